package ops

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Option is a setting of a function.
type Option struct {
	Name     string
	Default  string // as text; empty if the option is required, or if Doc describes the default
	Required bool   // has no default
	Doc      string
}

// Options lists the options of a function; nil when there is no such function.
func Options(name string) []Option {
	if k := find(name); k != nil {
		return k.options
	}
	return nil
}

// OptionError is an error in one option.
type OptionError struct {
	Option string
	Text   string
}

// OptionErrors are all errors in the options of a function.
type OptionErrors []OptionError

// Error implements error.
func (e OptionErrors) Error() string {
	var out []string
	for _, x := range e {
		out = append(out, x.Option+" "+x.Text)
	}
	return strings.Join(out, "; ")
}

// settings reads options and collects their errors.
type settings struct {
	kind *kind
	with map[string]string
	errs OptionErrors
}

func newSettings(k *kind, with map[string]string) *settings {
	s := &settings{kind: k, with: with}
	for _, name := range slices.Sorted(maps.Keys(with)) {
		if !slices.ContainsFunc(k.options, func(o Option) bool { return o.Name == name }) {
			var known []string
			for _, o := range k.options {
				known = append(known, o.Name)
			}
			s.bad(name, "is no option of %s: it has %s", k.name, strings.Join(known, ", "))
		}
	}
	return s
}

func (s *settings) bad(option, format string, args ...any) {
	s.errs = append(s.errs, OptionError{option, fmt.Sprintf(format, args...)})
}

// text returns the text of an option, or its default.
func (s *settings) text(name string) string {
	at := slices.IndexFunc(s.kind.options, func(o Option) bool { return o.Name == name })
	o := &s.kind.options[at]
	if v, ok := s.with[name]; ok {
		return v
	}
	if o.Required {
		s.bad(name, "is missing: %s", o.Doc)
	}
	return o.Default
}

// whole reads a number in [least, most].
func (s *settings) whole(name string, least, most int) int {
	v := s.text(name)
	if v == "" {
		return least
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		s.bad(name, "is %.40q, want a whole number from %d to %d", v, least, most)
		return least
	}
	return n
}

// sizes reads dimensions of at least least with commas between; false where some text is none.
func (s *settings) sizes(name string, least int64) (out []int64, ok bool) {
	for part := range strings.SplitSeq(s.text(name), ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 32)
		if err != nil || n < least {
			s.bad(name, "has %.40q in it, want sizes with commas between, such as 3,28,28", part)
			return out, false
		}
		out = append(out, n)
	}
	return out, true
}

// number reads a finite number in [least, most].
func (s *settings) number(name string, least, most float64) float64 {
	v := s.text(name)
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(x) || x < least || x > most {
		s.bad(name, "is %.40q, want a number from %v to %v", v, least, most)
		return least
	}
	return x
}

// oneOf reads one of some words.
func (s *settings) oneOf(name string, words ...string) string {
	v := s.text(name)
	if !slices.Contains(words, v) {
		s.bad(name, "is %.40q, want %s", v, strings.Join(words, " or "))
		return words[0]
	}
	return v
}

// boolean reads true or false.
func (s *settings) boolean(name string) bool { return s.oneOf(name, "false", "true") == "true" }
