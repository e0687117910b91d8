package config

import (
	"slices"
	"strings"
)

// kindSupplied is the kind of workers whose machines are had when a plan needs them.
const kindSupplied = "supplied"

// supplied checks the settings of a worker whose machine is supplied.
func (c *checker) supplied(b *Backend, path string) {
	c.need(b.Linger >= 0, path+".linger", "is %v, want at least 0s", b.Linger)
	if len(b.Command) == 0 {
		return
	}
	c.need(b.Command[0] != "", path+".command", "begins with an empty text, want a program")
	c.need(slices.ContainsFunc(b.Command, func(a string) bool { return strings.Contains(a, "{port}") }),
		path+".command", "has no {port}: the process would not know where to listen")
}
