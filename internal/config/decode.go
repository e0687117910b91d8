package config

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds on what a file may hold, aliases expanded.
const (
	maxNodes = 200_000
	maxList  = 10_000
)

// decoder copies a YAML tree into a File. The library's strict mode does not check types that decode themselves and
// knows no paths. This one reports every unknown key and every wrong value with path and line.
type decoder struct {
	c     *checker
	nodes int
	full  bool // the bound on nodes was exceeded and reported
}

// text is a scalar with its own syntax.
type text interface{ parse(string) error }

var systemType = reflect.TypeFor[System]()

func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	if d.nodes++; d.nodes > maxNodes {
		if !d.full {
			d.full = true
			d.c.at(n.Line, path, "the file holds more than %d values, aliases expanded", maxNodes)
		}
		return
	}
	for hops := 0; n.Kind == yaml.AliasNode; hops++ {
		if hops > 100 {
			d.c.at(n.Line, path, "the alias *%s leads in a circle", n.Value)
			return
		}
		n = n.Alias
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return // the same as leaving the key out
	}
	d.c.f.lines[path] = n.Line
	if t, ok := v.Addr().Interface().(text); ok {
		if n.Kind != yaml.ScalarNode {
			d.wrong(n, path, "a single value")
		} else if err := t.parse(n.Value); err != nil {
			d.c.at(n.Line, path, "%v", err)
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path)
	case reflect.Struct:
		if v.Type() == systemType && n.Kind == yaml.ScalarNode {
			v.FieldByName("Name").SetString(n.Value)
			d.c.f.lines[join(path, "name")] = n.Line
			return
		}
		d.fields(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	case reflect.Map:
		d.table(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) fields(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.wrong(n, path, "a mapping with "+oneOf(keys(v.Type())))
		return
	}
	known := keys(v.Type())
	d.entries(n, path, func(k, value *yaml.Node, at string) {
		found := false
		for j := range v.NumField() {
			if v.Type().Field(j).Tag.Get("yaml") == k.Value {
				found = true
				d.value(value, v.Field(j), at)
				break
			}
		}
		if !found {
			hint, best := didYouMean(k.Value, known)
			if hint == "" {
				hint = "; known here: " + strings.Join(known, ", ")
			}
			d.c.at(k.Line, at, "unknown key%s", hint)
			if best != "" {
				d.c.bad[join(path, best)] = true // do not also complain that it is missing
			}
		}
	})
}

// entries calls f with each entry of a mapping whose value is to be read, and where it stands.
func (d *decoder) entries(n *yaml.Node, path string, f func(k, value *yaml.Node, at string)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if at := join(path, shown(k.Value)); d.key(k, at, seen) {
			f(k, n.Content[i+1], at)
		}
	}
}

// key checks one key of a mapping and reports whether to read its value.
func (d *decoder) key(k *yaml.Node, at string, seen map[string]int) bool {
	switch {
	case k.Kind != yaml.ScalarNode:
		d.c.at(k.Line, at, "a key must be a single word")
		return false
	case k.Value == "":
		d.c.at(k.Line, at, "a key is empty")
		return false
	case k.Tag == "!!merge":
		d.c.at(k.Line, at, "merge keys are not read: repeat the settings, or use an alias for a whole value")
		return false
	case seen[k.Value] > 0:
		d.c.at(k.Line, at, "given twice, first in line %d", seen[k.Value])
		return false
	}
	seen[k.Value] = k.Line
	return true
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.wrong(n, path, "a list")
		return
	}
	if len(n.Content) > maxList {
		d.c.at(n.Line, path, "a list of %d entries, more than %d", len(n.Content), maxList)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, x := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.value(x, v.Index(i), at)
		if !d.c.f.has(at) && !d.full {
			d.c.at(x.Line, at, "the entry is empty")
		}
	}
}

func (d *decoder) table(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.wrong(n, path, "a mapping of names to values")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	d.entries(n, path, func(k, value *yaml.Node, at string) {
		x := reflect.New(v.Type().Elem()).Elem()
		d.value(value, x, at)
		v.SetMapIndex(reflect.ValueOf(k.Value), x)
	})
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	want := map[reflect.Kind]string{
		reflect.String: "a text", reflect.Int: "a whole number", reflect.Int64: "a whole number",
		reflect.Float64: "a number", reflect.Bool: "true or false",
	}[v.Kind()]
	if n.Kind != yaml.ScalarNode {
		d.wrong(n, path, want)
		return
	}
	if v.Kind() == reflect.String {
		v.SetString(n.Value) // any scalar is a text: version: 1 means "1"
		return
	}
	// The tag decides, because the library would truncate 1.5 to a whole number.
	var ok bool
	switch v.Kind() {
	case reflect.Bool:
		ok = n.Tag == "!!bool"
	case reflect.Float64:
		ok = n.Tag == "!!int" || n.Tag == "!!float"
	default:
		ok = n.Tag == "!!int"
	}
	if !ok || n.Decode(v.Addr().Interface()) != nil {
		d.wrong(n, path, want)
	}
}

func (d *decoder) wrong(n *yaml.Node, path, want string) {
	is := "a mapping"
	switch n.Kind {
	case yaml.ScalarNode:
		is = fmt.Sprintf("%.60q", n.Value)
	case yaml.SequenceNode:
		is = "a list"
	}
	d.c.at(n.Line, path, "is %s, want %s", is, want)
}

// keys lists the keys of a struct in the order of its fields.
func keys(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		if k := t.Field(i).Tag.Get("yaml"); k != "" {
			out = append(out, k)
		}
	}
	return out
}

// shown returns a key for paths and messages: a file may have any bytes in a key.
func shown(key string) string {
	for _, r := range key {
		if r <= ' ' || r == 0x7f || r == 0xfffd || len(key) > 64 {
			return fmt.Sprintf("%.64q", key)
		}
	}
	return key
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
