//go:build cgo

package onnx

/*
#include <stdint.h>

// The bits of a thread's control word that have numbers too small to be normal count as zero, as inputs and as results.
#if defined(__x86_64__)
static uint64_t control(void) { uint32_t w; __asm__ volatile("stmxcsr %0" : "=m"(w)); return w; }
static void set_control(uint64_t to) { uint32_t w = (uint32_t)to; __asm__ volatile("ldmxcsr %0" : : "m"(w)); }
enum { flush = 0x8040 };
#elif defined(__aarch64__)
static uint64_t control(void) { uint64_t w; __asm__ volatile("mrs %0, fpcr" : "=r"(w)); return w; }
static void set_control(uint64_t to) { __asm__ volatile("msr fpcr, %0" : : "r"(to)); }
enum { flush = 1 << 24 };
#else
static uint64_t control(void) { return 0; }
static void set_control(uint64_t to) { (void)to; }
enum { flush = 0 };
#endif

static uint64_t flush_denormals(void) { uint64_t was = control(); set_control(was | flush); return was; }
*/
import "C"

import "runtime"

// denormalsAsZero is the runtime's setting for its own threads.
const denormalsAsZero = "session.set_denormal_as_zero"

// flushed calls f, for a model with a mask with numbers too small to be normal counted as zero, on this thread:
// attention gives places that are masked weights of about 1e-38 and multiplies by them, which takes processors several
// times as long.
func (m *model) flushed(f func() error) error {
	if m.padding == nil {
		return f()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	was := C.flush_denormals()
	defer func() { C.set_control(was) }()
	return f()
}
