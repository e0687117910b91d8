//go:build !unix

package cli

// lowerPriority does nothing here.
func lowerPriority(int) {}
