// Package ops holds the functions of tensors that connect the models of a pipeline: they crop and resize pictures,
// choose by scores, and track boxes from frame to frame. A Function is pure: the same tensors, options and state give
// the same answer.
//
// Boxes are rows of four FP32 numbers: x1, y1, x2, y2, with x to the right and y down. Pictures are UINT8 or FP32, with
// the picture's number first: [n, height, width, channels] (nhwc) or [n, channels, height, width] (nchw).
package ops
