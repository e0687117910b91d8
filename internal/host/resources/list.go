package resources

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-serving/sluice/internal/config"
)

// Left is something that has no counterpart.
type Left struct {
	Path string // of the setting, such as apps[0].cold_wait
	Line int    // in its file; 0 when not known
	Why  string // and what to do instead
}

// String returns PATH: WHY, with the line where there is one.
func (l Left) String() string {
	if l.Line > 0 {
		return fmt.Sprintf("line %d: %s: %s", l.Line, l.Path, l.Why)
	}
	return l.Path + ": " + l.Why
}

// List is what was made.
type List struct {
	Resources []Resource
	Left      []Left   // what is lost
	Notes     []string // what was assumed and is worth a look
}

func (l *List) leave(path string, line int, format string, args ...any) {
	l.Left = append(l.Left, Left{path, line, fmt.Sprintf(format, args...)})
}

func (l *List) note(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(l.Notes, s) {
		l.Notes = append(l.Notes, s)
	}
}

func (l *List) add(kind string, meta Meta, spec any) {
	l.Resources = append(l.Resources, Resource{apiVersion, kind, meta, spec})
}

// addApp adds an InferenceApp of one variant.
func (l *List) addApp(meta Meta, fleet string, a *config.App, v *config.Variant, m model) {
	l.add("InferenceApp", meta, object(field{"fleet", fleet}, field{"", a},
		field{"variants", []*yaml.Node{object(field{"", v}, field{"model", m})}}))
}

// sorted puts what was left out in the order of lines.
func (l *List) sorted() *List {
	slices.SortStableFunc(l.Left, func(a, b Left) int { return cmp.Compare(a.Line, b.Line) })
	return l
}

// Kinds lists the kinds of the resources, in their order.
func (l *List) Kinds() (out []string) {
	for _, r := range l.Resources {
		if !slices.Contains(out, r.Kind) {
			out = append(out, r.Kind)
		}
	}
	return out
}

// Write writes the resources of a kind as YAML documents; those of every kind for the empty text.
func (l *List) Write(w io.Writer, kind string) error {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	written := false
	for i := range l.Resources {
		if kind != "" && l.Resources[i].Kind != kind {
			continue
		}
		if err := e.Encode(&l.Resources[i]); err != nil {
			return fmt.Errorf("resources: %w", err)
		}
		written = true
	}
	if !written {
		return nil // the encoder cannot end what has not begun
	}
	if err := e.Close(); err != nil {
		return fmt.Errorf("resources: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}
