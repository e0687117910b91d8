// Package nn trains small image classifiers on processor cores: convolutions, pooling and dense layers in float32, by
// gradient descent with Adam (Kingma and Ba, 2015, algorithm 1), and writes them as ONNX nodes.
//
// It is as fast as the demo needs and no more general: convolutions are square, of odd size and keep height and width;
// hidden layers end in a rectifier. Results do not depend on the number of cores.
package nn
