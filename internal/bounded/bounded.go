// Package bounded holds functions of tests to a bound of memory and time. Decoders of foreign bytes run in it, so that
// a small input that takes much of either is a finding of the fuzzer.
package bounded

import (
	"fmt"
	"runtime/metrics"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Slack is what a run may allocate beside its bound: other goroutines of the test and the allocator's own rounding.
const Slack = 4 << 20

// Patience is how long a run may take. It is far above what any decoder needs, since machines of tests are slow. A
// process that had less than a fourth of a core in that time was held up by others, and gets up to thirty times as
// long.
const Patience = 20 * time.Second

// Fuzz is the bound, in bytes, for a run of a fuzz target with inputs of n bytes: far above what targets need that also
// encode, compare and decode again, and far below what an input that unfolds takes.
func Fuzz(n int) int { return 64<<20 + 4096*n }

// Run runs f. The test fails if f allocates more than bytes and Slack, in all. The process ends with every goroutine's
// stack if f takes longer than Patience, which a fuzzer reports with the input.
func Run(t testing.TB, bytes int, f func()) {
	t.Helper()
	defer Watch(t, bytes)()
	f()
}

// Watch begins what Run does, for a whole function of a test: defer bounded.Watch(t, bytes)().
func Watch(t testing.TB, bytes int) (end func()) {
	t.Helper()
	callOff := patience()
	before := allocated()
	return func() {
		t.Helper()
		callOff()
		if took := allocated() - before; took > uint64(bytes)+Slack {
			t.Errorf("%d bytes were allocated, at most %d are allowed", took, bytes+Slack)
		}
	}
}

// patience ends the process where a run takes too long, until it is called off.
func patience() (callOff func()) {
	begun, busy := time.Now(), processTime()
	over := make(chan struct{})
	go func() {
		tick := time.NewTicker(Patience)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			if processTime()-busy >= Patience/4 || time.Since(begun) >= 30*Patience {
				panic(fmt.Sprintf("bounded: still running after %v", time.Since(begun)))
			}
		}
	}()
	return func() { close(over) }
}

// processTime is the time that this process has had of all cores.
func processTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Input is Run for a decoder of an input: it may allocate factor times the input's size.
func Input(t testing.TB, input []byte, factor int, f func()) {
	t.Helper()
	Run(t, factor*len(input), f)
}

// allocated is the bytes that were allocated since the start of the process.
func allocated() uint64 {
	s := [1]metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s[:])
	return s[0].Value.Uint64()
}
