// Package onnx is the dataplane.Backend that runs models in this process, on the ONNX Runtime library, through
// github.com/yalue/onnxruntime_go.
//
// An instance has one session per variant and slot: sessions of their own scale better over cores than one shared by
// several runs, and each keeps its buffers for itself. The inputs of a batch are copied once, into a buffer of the slot;
// a large input that is a batch of its own is not copied at all. The outputs of a batch are allocated once, written by the
// runtime and handed out as slices.
package onnx
