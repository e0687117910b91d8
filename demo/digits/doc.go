// Package digits is the demo's task: somewhere in a picture, among letters and stray strokes, there is one digit; which one
// is it? The package renders such pictures, trains a ladder of classifiers and writes them as ONNX models with their measured
// accuracy.
//
// The variants take one input "image", UINT8 [N,1,192,192], and give "logits", FP32 [N,10], and "label", INT64 [N]. They
// cost what they cost because pictures are large: a network is trained on small ones, which is quick, and run on large
// ones, which is not.
package digits

// Size is the height and width of a picture that is served; Pixels the number of its elements.
const (
	Size   = 192
	Pixels = Size * Size
)
