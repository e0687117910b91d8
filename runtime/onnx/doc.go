// Package onnx is the dataplane.Backend that runs models in this process, on the ONNX Runtime library, through
// github.com/yalue/onnxruntime_go.
//
// An instance has one session per variant and slot, so that runs at the same time share neither threads nor an
// allocator, at the price of a copy of the weights per slot (BenchmarkSlots compares). The inputs of a batch are copied
// once, into a buffer of the slot; those of a batch of one query are not copied at all. The outputs of a batch are
// allocated once, written by the runtime and handed out as slices. Strings, and outputs whose shape only the run
// decides, cost one copy more.
//
// Where models are loaded and unloaded often, set MALLOC_ARENA_MAX=2: glibc otherwise keeps a heap per thread, and
// weights that one thread freed are not reused by the next.
package onnx
