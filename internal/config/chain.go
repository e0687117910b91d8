package config

import (
	_ "embed"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed chain.yaml
var chainTemplate []byte

// ChainTemplate returns a chain.yaml with remarks. The slice is the caller's.
func ChainTemplate() []byte { return slices.Clone(chainTemplate) }

// IsChain reports whether a text for deployment describes a chain of functions: it has stages.
func IsChain(data []byte) bool {
	var x struct {
		Stages yaml.Node `yaml:"stages"`
	}
	return yaml.Unmarshal(data, &x) == nil && !x.Stages.IsZero()
}

// ParseChain reads a chain.yaml: an app of stages, whose models are functions. It checks what needs no server.
func ParseChain(data []byte, path string) (*App, error) {
	g, err := (&File{}).chain(data, path, "")
	if err != nil {
		return nil, err
	}
	return &g.Apps[0], nil
}

// WithChain returns the file with a chain, as ParseChain reads it, in the place of its apps. The models are those of a
// repository.
func (f *File) WithChain(data []byte, path, repo string) (*File, error) {
	out := make(map[string]bool)
	for i := range f.Apps {
		out[f.Apps[i].Name] = true
	}
	return f.Without(out).chain(data, path, repo)
}

// chain reads a chain into a copy of f without apps. Without a repository it does not check what f has to say.
func (f *File) chain(data []byte, path, repo string) (*File, error) {
	g := *f
	g.name, g.lines = path, maps.Clone(f.lines)
	if g.lines == nil {
		g.lines = make(map[string]int)
	}
	maps.DeleteFunc(g.lines, func(path string, _ int) bool {
		return strings.HasPrefix(path, "apps") || strings.HasPrefix(path, "models")
	})
	g.Apps, g.Models, g.Profiles = make([]App, 1), Models{Repository: repo}, nil
	c := &checker{f: &g, bad: map[string]bool{}}
	const app = "apps[0]"
	a := &g.Apps[0]
	if !c.read(data, a, app) {
		return nil, c.err()
	}
	c.need(len(a.Stages) > 0, app+".stages", "is missing: list the steps, each with a function of the server")
	c.need(a.VersionOf == "", app+".version_of", "cannot be said of a chain")
	c.need(a.System == nil, app+".system", "cannot be said of a chain: it is served by the server's system")
	for i := range a.Stages {
		for k := range a.Stages[i].Variants {
			v := &a.Stages[i].Variants[k]
			c.need(v.Python == "", at(at(app+".stages", i)+".variants", k)+".python",
				"cannot be said in a chain: its models are functions")
		}
	}
	g.defaults()
	if repo != "" {
		c.file()
	} else {
		c.settings(&g)
		c.apps()
	}
	if len(c.found) > 0 {
		for i := range c.found {
			c.found[i].Path = strings.TrimPrefix(strings.TrimPrefix(c.found[i].Path, app), ".")
		}
		return nil, c.err()
	}
	return &g, nil
}
