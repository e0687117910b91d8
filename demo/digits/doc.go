// Package digits is the demo's task: it renders digits as if written by many hands, trains a ladder of classifiers from a
// linear model to an ensemble, and writes them as ONNX models with their measured accuracy.
//
// The variants take one input "image", FP32 [N,1,28,28] with values from 0 to 1, and give "logits", FP32 [N,10], and
// "label", INT64 [N].
package digits

// Size is the height and width of an image; Pixels the number of elements.
const (
	Size   = 192
	Pixels = Size * Size
)
