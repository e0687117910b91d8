package config

import (
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
)

// stageView is a stage of an app, written as one of stages or, for a single one, as variants.
type stageView struct {
	Stage
	path   string           // of the mapping that holds variants
	files  bool             // options of the function are read from files
	unread map[string]error // those that cannot be read
}

// stages lists an app's stages in the order of the file. The single stage of an app with variants has the app's name.
// The one variant of a built-in function's stage has the stage's name.
func (f *File) stages(a *App, path string) []stageView {
	if len(a.Stages) == 0 {
		return []stageView{{Stage: Stage{Name: a.Name, Variants: a.Variants, Queue: a.Queue}, path: path}}
	}
	var out []stageView
	for i := range a.Stages {
		v := stageView{Stage: a.Stages[i], path: at(path+".stages", i)}
		if v.Function != "" {
			f.readOptions(&v)
			v.Variants = []Variant{{Name: v.Name, Accuracy: 1, MaxBatch: defaultMaxBatch}}
		}
		out = append(out, v)
	}
	return out
}

// readOptions puts what files have in place of options that name them, as @FILE.
func (f *File) readOptions(v *stageView) {
	v.With = maps.Clone(v.With)
	for option, text := range v.With { // any order: each is read by itself
		name, ok := strings.CutPrefix(text, "@")
		if !ok {
			continue
		}
		v.files = true
		data, err := readBounded(f.Path(name))
		if err != nil {
			if v.unread == nil {
				v.unread = make(map[string]error)
			}
			v.unread[option] = err
		}
		v.With[option] = string(data)
	}
}

// readBounded reads a file of at most MaxBytes.
func readBounded(path string) ([]byte, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err == nil && len(data) > MaxBytes {
		data, err = nil, fmt.Errorf("%s is larger than the limit of %d bytes", path, MaxBytes)
	}
	return data, err
}

// SystemOf returns the system that serves the i-th app: its own or the file's.
func (f *File) SystemOf(i int) System {
	if s := f.Apps[i].System; s != nil {
		return *s
	}
	return f.System
}

// expand lists the single workers of all groups: for each its name and the index of its entry.
func (f *File) expand() (names []string, entry []int) {
	for i, w := range f.Workers {
		for n := range w.Count {
			name := w.Name
			if w.Count > 1 {
				name = fmt.Sprintf("%s-%d", w.Name, n)
			}
			names = append(names, name)
			entry = append(entry, i)
		}
	}
	return names, entry
}

func at(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
