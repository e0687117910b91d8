package config

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/sluice-serving/sluice/internal/limits"
)

// Values of models.control.
const (
	ControlNone     = "none"
	ControlPoll     = "poll"
	ControlExplicit = "explicit"
)

// AllModels in models.load is every model.
const AllModels = "*"

// CheckCount returns an error when n models are more than the limit; where says where they are.
func (m *Models) CheckCount(n int, where string) error {
	limit := m.Limit
	if limit == 0 {
		limit = limits.Models
	}
	if n <= limit {
		return nil
	}
	return fmt.Errorf("%s are %d models, more than models.limit, %d: raise it, or --model-limit, or have models.load "+
		"name those to serve, under models.control explicit", where, n, limit)
}

// Changes reports whether models come and go in a running server without a change of the file.
func (m *Models) Changes() bool { return m.Control == ControlPoll || m.Control == ControlExplicit }

// SetModels replaces the settings of models that m has, and checks them.
func (f *File) SetModels(m Models) error {
	if m.Control != "" {
		f.Models.Control = m.Control
	}
	if len(m.Load) > 0 {
		f.Models.Load = m.Load
	}
	if m.Poll > 0 {
		f.Models.Poll = m.Poll
	}
	if m.Limit != 0 {
		f.Models.Limit = m.Limit
	}
	c := &checker{f: f, bad: map[string]bool{}}
	c.settings(f)
	c.models()
	return c.err()
}

// models checks how models are loaded.
func (c *checker) models() {
	m := &c.f.Models
	c.need(m.Repository != "" || !m.Changes(), "models.control", "is %s, and there is no models.repository", m.Control)
	c.need(len(m.Load) == 0 || m.Control == ControlExplicit, "models.load",
		"lists models to begin with, which control explicit has")
	for i, w := range c.f.Workers {
		c.need(w.Backend.Kind == "onnx" || !m.Changes(), at("workers", i)+".backend.kind",
			"is %s: with models.control %s models run in this process, kind onnx", w.Backend.Kind, m.Control)
	}
}

// Started returns the file with the apps that a server begins with: all of them, or with control explicit those of the
// models of models.load, and of the models that those are made of.
func (f *File) Started() *File {
	if f.Models.Control != ControlExplicit || slices.Contains(f.Models.Load, AllModels) {
		return f
	}
	wanted := make(map[string]bool)
	for _, name := range f.Models.Load {
		wanted[name] = true
		for _, x := range f.Members(name) {
			wanted[x] = true
		}
	}
	out := make(map[string]bool)
	for i := range f.Apps {
		out[f.Apps[i].Name] = !wanted[f.Apps[i].clientName()]
	}
	return f.Without(out)
}

// ModelNames lists the models of the file's apps, as clients see them, in its order.
func (f *File) ModelNames() (out []string) {
	for i := range f.Apps {
		if name := f.Apps[i].clientName(); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Restarts lists the sections that differ from those of another file, but for apps and profiles: a server reads the
// others at its start alone.
func (f *File) Restarts(other *File) (out []string) {
	a, b := reflect.ValueOf(f).Elem(), reflect.ValueOf(other).Elem()
	for k := range a.NumField() {
		section := a.Type().Field(k).Tag.Get("yaml")
		if section != "" && section != "apps" && section != "profiles" &&
			!reflect.DeepEqual(a.Field(k).Interface(), b.Field(k).Interface()) {
			out = append(out, section)
		}
	}
	return out
}

// Only returns the file with the apps of one model, as clients see it, alone.
func (f *File) Only(model string) *File {
	out := make(map[string]bool)
	for i := range f.Apps {
		out[f.Apps[i].Name] = f.Apps[i].clientName() != model
	}
	return f.Without(out)
}

// Members lists the models that a model of several stages is made of; none for another one.
func (f *File) Members(model string) (out []string) {
	add := func(name string) {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for i := range f.Apps {
		if f.Apps[i].clientName() != model {
			continue
		}
		for _, name := range f.Apps[i].Ensembles {
			add(name)
		}
		for _, s := range f.Apps[i].Stages {
			for _, v := range s.Variants {
				add(v.Model)
			}
		}
	}
	return out
}

// clientName is the name of the model that clients call.
func (a *App) clientName() string {
	if a.VersionOf != "" {
		return a.VersionOf
	}
	return a.Name
}
