package config

import (
	"fmt"
	"sort"
	"strings"
)

// Problem is one error in a file.
type Problem struct {
	File string
	Line int    // of the field, or of the closest one around it that is in the file; 1 when there is none
	Path string // such as apps[0].slo.latency; empty for the file as a whole
	Text string // what is wrong and what to do about it
}

// String returns FILE:LINE: PATH: TEXT.
func (p Problem) String() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d", p.Line)
	}
	if p.Path != "" {
		s += ": " + p.Path
	}
	return s + ": " + p.Text
}

// Problems are all errors of a file, in the order of lines. Load, Parse, Resolve and CheckNames return them; errors.As
// finds them.
type Problems []Problem

// maxShown bounds the message for a file with many problems.
const maxShown = 50

// Error lists the problems, one on each line.
func (p Problems) Error() string {
	var b strings.Builder
	for i, x := range p {
		if i == maxShown {
			fmt.Fprintf(&b, "\nand %d more", len(p)-maxShown)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(x.String())
	}
	return b.String()
}

// checker collects problems of one file.
type checker struct {
	f     *File
	found Problems
	bad   map[string]bool // paths already reported; their consequences are not
}

// addf reports a problem at path unless one at, above or below it was reported already.
func (c *checker) addf(path, format string, args ...any) {
	for at := path; at != ""; at = parent(at) {
		if c.bad[at] {
			return
		}
	}
	c.at(c.f.line(path), path, format, args...)
}

func (c *checker) at(line int, path, format string, args ...any) {
	c.bad[path] = true
	c.found = append(c.found, Problem{File: c.f.name, Line: line, Path: path, Text: fmt.Sprintf(format, args...)})
}

// err returns the problems found, by line, or nil.
func (c *checker) err() error {
	if len(c.found) == 0 {
		return nil
	}
	sort.SliceStable(c.found, func(i, j int) bool { return c.found[i].Line < c.found[j].Line })
	return c.found
}

// parent removes the last element of a path; the parent of a top-level field is the empty path.
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// SaysSlack reports whether the file says how much slack there is, even if it says none.
func (f *File) SaysSlack() bool { return f.has("system.slack") }

// has reports whether the file gives a value at path.
func (f *File) has(path string) bool { return f.lines[path] > 0 }

// line returns the line of path, or of the closest enclosing field in the file; the first line when there is none.
func (f *File) line(path string) int {
	for at := path; at != ""; at = parent(at) {
		if n := f.lines[at]; n > 0 {
			return n
		}
	}
	return 1
}

// Problem returns a problem with a field of the file, of which another package found out.
func (f *File) Problem(path, format string, args ...any) error {
	return Problems{{File: f.name, Line: f.line(path), Path: path, Text: fmt.Sprintf(format, args...)}}
}
