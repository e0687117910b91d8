//go:build !unix

package cli

import "os/exec"

// startAside starts a process with the priority of this one.
func startAside(c *exec.Cmd) error { return c.Start() }
