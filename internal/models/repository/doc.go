// Package repository reads a model repository in Triton's layout:
//
//	<root>/<model>/config.pbtxt            optional
//	<root>/<model>/<version>/model.onnx    version is a positive number
//
// It reads no weights, follows no link that leaves the root, and bounds the bytes that it reads.
package repository
