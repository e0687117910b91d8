//go:build !linux

package server

// lowPriority does nothing: threads have no priorities of their own here.
func lowPriority() {}
