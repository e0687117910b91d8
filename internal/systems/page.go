package systems

import (
	"cmp"
	"fmt"
	"slices"
)

// Page describes one system or one component.
type Page struct {
	Kind       string // system, or a kind of components
	Name       string
	Doc        string      // the rest of a sentence that begins with the name
	Source     string      // paper and section; "" of a composition
	Components []Component `json:",omitempty"` // that a system is made of
	Systems    []string    `json:",omitempty"` // that a component is in
	Options    []Setting   // that it reads, in the order of the table
}

// Setting is an option on a page.
type Setting struct {
	Key     string   // its path in a configuration, below system
	Doc     string   // the rest of a sentence that begins with the option's name
	Type    string   // which values it takes, in words
	Default string   // used when neither the system nor a configuration sets it
	Value   string   `json:",omitempty"` // that a system gives it
	ReadBy  []string // components of the system, or the component that the page is about
}

// Pages returns the pages with a name: of a system, which may be written ROUTER+BATCHER, and of components.
func Pages(name string) ([]Page, error) {
	var out []Page
	if s, err := Named(name); err == nil {
		out = append(out, s.page())
	}
	known := Names()
	for _, k := range Kinds() {
		for _, p := range Components(k) {
			known = append(known, p.Name)
			if p.Name == name {
				out = append(out, p.page())
			}
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	if o := option(name); o != nil {
		return nil, fmt.Errorf("%q is neither a system nor a component but an option, read by %s: ask for one of these",
			name, o.ReadBy())
	}
	return nil, fmt.Errorf("system or component %q does not exist%s: 'sluice systems' lists all", name,
		didYouMean(name, known))
}

func (s System) page() Page {
	out := Page{
		Kind: "system", Name: s.Name, Doc: cmp.Or(s.Doc, "is a router and a batcher, with a written placement"),
		Source: s.Source, Components: s.Components(),
	}
	for at := range table {
		if x := table[at].setting(out.Components); x != nil {
			x.Value = table[at].text(&s.Options)
			out.Options = append(out.Options, *x)
		}
	}
	return out
}

func (p Component) page() Page {
	out := Page{Kind: string(p.Kind), Name: p.Name, Doc: p.Doc, Source: p.Source}
	for _, s := range all {
		if slices.Contains(s.Components(), p) {
			out.Systems = append(out.Systems, s.Name)
		}
	}
	for at := range table {
		if x := table[at].setting([]Component{p}); x != nil {
			out.Options = append(out.Options, *x)
		}
	}
	return out
}

// setting returns the option as these components read it; nil when none does.
func (o *Option) setting(components []Component) *Setting {
	out := &Setting{Key: o.Key(), Doc: o.Doc, Type: o.kind}
	for _, p := range components {
		if r, ok := o.reader(p); ok {
			out.ReadBy = append(out.ReadBy, p.String())
			out.Default = cmp.Or(out.Default, r.Default)
		}
	}
	if out.ReadBy == nil {
		return nil
	}
	return out
}
