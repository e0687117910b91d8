package config

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// fileOption begins an option of a function that is what a file has; the file's name follows.
const fileOption = "@"

// fromFiles reports whether some option of a function is what a file has.
func fromFiles(with map[string]string) bool {
	for _, text := range with { // any order: one is enough
		if strings.HasPrefix(text, fileOption) {
			return true
		}
	}
	return false
}

// readOptions reads options from their files, once, and checks them.
func (r *resolver) readOptions() {
	r.with = make(map[string]map[string]string)
	for i := range r.f.Apps {
		stages := r.f.stages(&r.f.Apps[i], at("apps", i))
		for k := range stages {
			if s := &stages[k]; s.Function != "" && fromFiles(s.With) {
				r.readFiles(s)
			}
		}
	}
}

// readFiles reads the options of one stage.
func (r *resolver) readFiles(s *stageView) {
	s.With = maps.Clone(s.With)
	found := len(r.c.found)
	for _, option := range slices.Sorted(maps.Keys(s.With)) {
		name, ok := strings.CutPrefix(s.With[option], fileOption)
		if !ok {
			continue
		}
		data, err := readBounded(r.f.Path(name))
		if err != nil {
			r.c.addf(join(s.path+".with", shown(option)), "cannot be read: %v", err)
		}
		s.With[option] = string(data)
	}
	if len(r.c.found) == found {
		r.c.options(s)
	}
	r.with[s.path] = s.With
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
