package config

import (
	"maps"
	"slices"
)

// Without returns a copy of the file without the apps that out has, by name, and their placements. Where an app is left
// out and others are versions of it, the last of those in the file takes its name. The copy shares the rest.
func (f *File) Without(out map[string]bool) *File {
	g := *f
	g.Apps, g.Placement = nil, nil
	heir := make(map[string]string) // by app that is left out: the app that takes its name
	for i := range f.Apps {
		if a := &f.Apps[i]; !out[a.Name] && a.VersionOf != "" && out[a.VersionOf] {
			heir[a.VersionOf] = a.Name
		}
	}
	renamed := func(name string) string {
		for was, is := range heir {
			if is == name {
				return was
			}
		}
		return name
	}
	for i := range f.Apps {
		a := f.Apps[i]
		if out[a.Name] {
			continue
		}
		if name := renamed(a.Name); name != a.Name {
			a.Name, a.VersionOf = name, ""
		}
		g.Apps = append(g.Apps, a)
	}
	for _, p := range f.Placement {
		if out[p.App] {
			continue
		}
		if name := renamed(p.App); name != p.App {
			if p.Stage == p.App {
				p.Stage = name
			}
			p.App = name
		}
		g.Placement = append(g.Placement, p)
	}
	g.Placement = slices.Clip(g.Placement)
	return &g
}

// WithWhole returns a copy of the file in which models whose file looks like it batched, and which were found not to,
// have no batch dimension: a run takes one query, whole. Models whose config.pbtxt says how they batch stay as they
// are.
func (f *File) WithWhole(models map[string]bool) *File {
	g := *f
	g.whole = maps.Clone(models)
	in := make(map[string]bool) // apps that have one
	single := func(app string, list []Variant) []Variant {
		list = slices.Clone(list)
		for i := range list {
			if models[list[i].Model] {
				list[i].MaxBatch, in[app] = min(list[i].MaxBatch, 1), true
			}
		}
		return list
	}
	g.Apps = slices.Clone(f.Apps)
	for i := range g.Apps {
		a := &g.Apps[i]
		a.Variants, a.Stages = single(a.Name, a.Variants), slices.Clone(a.Stages)
		for k := range a.Stages {
			a.Stages[k].Variants = single(a.Name, a.Stages[k].Variants)
		}
	}
	g.Placement = slices.Clone(f.Placement)
	for i := range g.Placement {
		if p := &g.Placement[i]; in[p.App] {
			p.BatchLimit = min(p.BatchLimit, 1)
		}
	}
	return &g
}
