// Package digits makes the models and data of the demo. The task is to recognise the one digit in a picture with
// letters and stray strokes. The package renders such pictures, trains a ladder of classifiers and writes them as ONNX
// models with their measured accuracy.
//
// The variants take one input "image", UINT8 [N,1,192,192], and give "logits", FP32 [N,10], and "label", INT64 [N].
// Networks are trained on small pictures, which is fast, and run on large ones, which takes most of the time. As
// measured with seed 1 on 1,500 held-out pictures (one standard error is 0.5 points at the top, 1.0 at the bottom),
// with the multiplications that a picture takes:
//
//	variant   accuracy   millions   what it is
//	tiny        80.9 %         20   one network at half the resolution
//	small       89.7 %         91   one of few channels
//	medium      93.4 %        255   one of more
//	large       94.7 %        511   the mean of two such
//	xlarge      96.1 %      1,532   the mean of three over two views
//
// BenchmarkLadder measures latencies in ONNX Runtime.
//
// For a pipeline of models there are scenes, which are pictures with several digits. Detectors find the digits of a
// scene, and readers read one digit. With seed 1, on 300 held-out scenes (a detector's accuracy is the harmonic mean of
// precision and recall):
//
//	stage    variant   accuracy   millions
//	detect   coarse      84.2 %         20
//	detect   fine        93.1 %         90
//	read     quick       90.8 %          4
//	read     careful     96.7 %         11
package digits

// Size is the height and width of a picture that is served; Pixels the number of its elements.
const (
	Size   = 192
	Pixels = Size * Size
)
