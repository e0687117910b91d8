//go:build !linux

package host

// lowPriority does nothing: threads have no priorities of their own here.
func lowPriority() {}
