// Package nn trains small image classifiers on processor cores: convolutions and pooling in float32, by gradient
// descent with Adam (Kingma and Ba, 2015, algorithm 1).
//
// It is only as general as the demo needs: convolutions are square, of odd size, keep height and width and end in a
// rectifier. No layer depends on the height and width of its input, so a network that was trained on small pictures
// runs on large ones. Results do not depend on the number of cores.
package nn
