// Package repository reads a model repository laid out as Triton lays one out:
//
//	<root>/<model>/config.pbtxt            optional
//	<root>/<model>/<version>/model.onnx    version is a positive number
//
// It reads no weights, follows no link that leaves the root, and bounds everything it reads.
package repository
