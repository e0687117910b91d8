//go:build unix

package cli

import "syscall"

// lowerPriority gives a process the lowest priority, where that is allowed.
func lowerPriority(pid int) { _ = syscall.Setpriority(syscall.PRIO_PROCESS, pid, 19) }
