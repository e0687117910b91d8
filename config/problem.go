package config

import (
	"fmt"
	"sort"
	"strings"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	File string
	Line int    // 0 when the field is not in the file
	Path string // such as apps[0].slo.latency; empty for the file as a whole
	Text string // what is wrong and what to do about it
}

// String is the form that is shown: FILE:LINE: PATH: TEXT.
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

// Problems is everything that is wrong with a file, in the order of its lines. It is the error of Load, Parse, Resolve
// and CheckNames; errors.As finds it.
type Problems []Problem

// maxShown bounds the message for a file that is wrong throughout.
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
	bad   map[string]bool // paths already reported: what follows from them is not worth another line
}

// addf reports a problem at path unless something at, above or below it was reported already.
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

// parent cuts the last element off a path; the parent of a top-level field is the empty path.
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// has tells whether the file gives a value at path.
func (f *File) has(path string) bool { return f.lines[path] > 0 }

// line returns the line of path, or of the closest thing around it that is in the file.
func (f *File) line(path string) int {
	for at := path; at != ""; at = parent(at) {
		if n := f.lines[at]; n > 0 {
			return n
		}
	}
	return 0
}
