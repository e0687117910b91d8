package config

import "slices"

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
