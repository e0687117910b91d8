//go:build !unix

package cli

import "os/exec"

// startLowPriority starts a process with the priority of this one.
func startLowPriority(c *exec.Cmd) error { return c.Start() }
