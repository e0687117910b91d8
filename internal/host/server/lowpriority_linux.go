package server

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// lowPriority has the calling goroutine run only where nobody else wants the processor from now on, on a thread of its
// own that ends with it.
func lowPriority() {
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19) // a thread's, on Linux
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE, Nice: 19}, 0)
}
