package systems

import (
	"fmt"
	"slices"
	"strings"
)

// Option is a setting that components read: an entry of the one table by which options are parsed, shown, recorded and
// documented.
type Option struct {
	Name string
	// Doc says what the option is or does. It continues a sentence that begins with the option's name.
	Doc string
	// Direct is set when the option is a key of system in a configuration. The others are keys of system.options.
	Direct bool
	// Readers are the components that read it. Systems without any of them refuse it.
	Readers []Reader
	field
}

// Reader is a component that reads an option.
type Reader struct {
	Kind    Kind
	Name    string
	Default string // the component's default
}

// by lists components of one kind with one default.
func by(k Kind, def string, components ...string) []Reader {
	return each(components, func(name string) Reader { return Reader{k, name, def} })
}

// Key is the option's path in a configuration, below system.
func (o *Option) Key() string {
	if o.Direct {
		return o.Name
	}
	return "options." + o.Name
}

// Type describes the legal values.
func (o *Option) Type() string { return o.kind }

// ReadBy names the components that read the option, such as "the planners proteus and infaas and the batcher aimd".
func (o *Option) ReadBy() string {
	var kinds []string
	for _, k := range Kinds() {
		var names []string
		for _, r := range o.Readers {
			if r.Kind == k {
				names = append(names, r.Name)
			}
		}
		switch {
		case len(names) == 0:
		case k == Engine:
			kinds = append(kinds, "the engine")
		case len(names) == 1:
			kinds = append(kinds, fmt.Sprintf("the %s %s", k, names[0]))
		default:
			kinds = append(kinds, fmt.Sprintf("the %ss %s", k, and(names)))
		}
	}
	return and(kinds)
}

// reader returns the entry of a component; false when the component does not read the option.
func (o *Option) reader(p Component) (Reader, bool) {
	at := slices.IndexFunc(o.Readers, func(r Reader) bool { return r.Kind == p.Kind && r.Name == p.Name })
	if at < 0 {
		return Reader{}, false
	}
	return o.Readers[at], true
}

// and joins words in a sentence.
func and(words []string) string {
	switch n := len(words); n {
	case 0:
		return "nothing"
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}
