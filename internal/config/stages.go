package config

import "fmt"

// stageView is a stage of an app, written as one of stages or, for a single one, as variants.
type stageView struct {
	Stage
	path string // of the mapping that holds variants
}

// stages lists an app's stages in the order of the file. The single stage of an app with variants has the app's name.
// The one variant of a built-in function's stage has the stage's name.
func (f *File) stages(a *App, path string) []stageView {
	if len(a.Stages) == 0 {
		return []stageView{{Stage{Name: a.Name, Variants: a.Variants, Queue: a.Queue}, path}}
	}
	var out []stageView
	for i := range a.Stages {
		v := stageView{a.Stages[i], at(path+".stages", i)}
		if v.Function != "" {
			v.Variants = []Variant{{Name: v.Name, Accuracy: 1, MaxBatch: defaultMaxBatch}}
		}
		out = append(out, v)
	}
	return out
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
