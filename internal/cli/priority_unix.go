//go:build unix && !linux

package cli

import (
	"os/exec"
	"syscall"
)

// startLowPriority starts a process and gives it the lowest priority, where that is allowed.
func startLowPriority(c *exec.Cmd) error {
	if err := c.Start(); err != nil {
		return err
	}
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, c.Process.Pid, 19)
	return nil
}
