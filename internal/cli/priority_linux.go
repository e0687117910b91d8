package cli

import (
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// startLowPriority starts a process that gets processor time only where nobody else wants it, where that is allowed. A
// priority that is set afterwards would not reach threads that the process has by then, so it is inherited: from a
// thread that has it, starts the process, and ends.
func startLowPriority(c *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19)
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE, Nice: 19}, 0)
		started <- c.Start()
	}()
	return <-started
}
