// Package tied starts processes that end with this one, whatever ends it.
package tied

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// launch starts processes from one thread that never ends: the kernel ends a process with Pdeathsig when the thread
// that started it ends, and Go moves goroutines between threads.
var launch = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// Start starts a process that ends with this one, in a process group of its own.
func Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error)
	launch() <- func() { done <- cmd.Start() }
	return <-done
}
