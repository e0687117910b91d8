// Package digits has the models and pictures of the demonstration. The task is to recognise the one digit in a picture
// with letters and stray strokes. The package draws such pictures and carries a ladder of trained classifiers, whose
// weights it writes as ONNX models. `sluice demo --train` makes the weights, with package examples/training.
//
// The variants take one input "image", UINT8 [N,1,192,192], and give "logits", FP32 [N,10], and "label", INT64 [N].
// As measured on 1,500 held-out pictures (one standard error is 0.5 points at the top, 1.0 at the bottom), with the
// multiplications that a picture takes:
//
//	variant   accuracy   millions   what it is
//	tiny        80.9 %         20   one network at half the resolution
//	small       89.8 %         91   one of few channels
//	medium      93.4 %        255   one of more
//	large       94.6 %        511   the mean of two such
//	xlarge      96.1 %      1,532   the mean of three over two views
//
// For a graph of models there are scenes, which are pictures with several digits. Detectors find the digits of a scene,
// and readers read one digit. On 300 held-out scenes (a detector's accuracy is the harmonic mean of precision and
// recall):
//
//	stage    variant   accuracy   millions
//	detect   coarse      84.1 %         20
//	detect   fine        93.1 %         90
//	read     quick       90.7 %          4
//	read     careful     96.8 %         11
//
// Weights are kept as one byte each, 0.9 MB in all, and models are written with four bytes for each. Accuracies are
// those of the kept weights: with the weights as trained they were within 0.15 points of these. BenchmarkLadder of
// examples/training measures latencies in ONNX Runtime.
package digits

// Size is the height and width of a picture that is served; Pixels the number of its elements.
const (
	Size   = 192
	Pixels = Size * Size
)
