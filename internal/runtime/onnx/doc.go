// Package onnx is the dataplane.Backend that runs models in this process, on the ONNX Runtime library, through
// github.com/yalue/onnxruntime_go.
//
// An instance has one session per variant and slot, so that concurrent runs share neither threads nor an allocator. The
// price is a copy of the weights per slot (BenchmarkSlots compares). The inputs of a batch are copied once, into a
// buffer of the slot; those of a batch of one query are not copied at all. The outputs of a batch are allocated once,
// written by the runtime and handed out as slices. Strings, and outputs whose shape is known only after the run, cost
// one more copy.
//
// If models are loaded and unloaded often, set MALLOC_ARENA_MAX=2. Otherwise glibc keeps a heap per thread, and memory
// of weights that one thread freed is not reused by the next.
package onnx
