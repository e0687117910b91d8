package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Setting is a value that a file gives.
type Setting struct {
	Path string // such as apps[0].slo.latency
	Line int
}

// Given lists the values that the file gives, in the order of its lines: single ones, not the mappings and lists around
// them.
func (f *File) Given() []Setting {
	inner := map[string]bool{}
	for p := range f.lines {
		for up := parent(p); up != ""; up = parent(up) {
			inner[up] = true
		}
	}
	var out []Setting
	for _, p := range slices.Sorted(maps.Keys(f.lines)) {
		if !inner[p] {
			out = append(out, Setting{p, f.lines[p]})
		}
	}
	slices.SortStableFunc(out, func(a, b Setting) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), strings.Compare(a.Path, b.Path))
	})
	return out
}
