// Package schema makes JSON Schemas from Go types and their comments, for tests that keep written ones up to date, and
// checks values against them.
package schema

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"time"
)

// Schema is a JSON Schema.
type Schema = map[string]any

// Maker makes schemas.
type Maker struct {
	// Tag is the key of the tags that name the fields, yaml or json.
	Tag string
	// Refs is where the schemas of structs will stand, such as #/definitions/.
	Refs string
	// Comments describe the structs and their fields.
	Comments map[string]Comment
	// Special are the schemas of types that are written in a form of their own.
	Special map[reflect.Type]Schema
	// Short are other forms of structs, beside an object.
	Short map[reflect.Type]Schema
	// Enums are the only values of a text or of those in a list, by TYPE.FIELD, beside those that a tag `oneof` lists.
	// A tag `range` is LOW..HIGH of a number; HIGH may be missing, and >LOW leaves out LOW itself.
	Enums map[string][]string
	// Lenient takes what people write and a reader understands: a number for a text, and nothing (null) for a setting
	// that is left out. Objects are closed, and a field is required where its comment says "Required.". Otherwise
	// schemas describe what encoding/json writes: objects are open, and fields are required that are always there.
	Lenient bool

	// Defs are the schemas of structs that were made so far, by name.
	Defs  map[string]Schema
	names map[reflect.Type]string
}

// Of returns the schema of a type. That of a struct is a reference to one in Defs.
func (m *Maker) Of(t reflect.Type) Schema {
	if s, ok := m.Special[t]; ok {
		return maps.Clone(s)
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return Schema{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return Schema{}
	case !m.Lenient && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return Schema{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return m.orNull(m.Of(t.Elem()))
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return Schema{"type": "string", "contentEncoding": "base64"}
		}
		s := Schema{"type": "array", "items": m.Of(t.Elem())}
		if !m.Lenient && t.Kind() == reflect.Slice {
			return m.orNull(s)
		}
		return s
	case reflect.Map:
		s := Schema{"type": "object", "additionalProperties": m.Of(t.Elem())}
		if !m.Lenient {
			return m.orNull(s)
		}
		return s
	case reflect.Struct:
		if t.Name() == "" {
			s := Schema{"type": "object"}
			m.object(t, s)
			return s
		}
		s := Schema{"$ref": m.Refs + m.define(t)}
		if short, ok := m.Short[t]; ok {
			return Schema{"anyOf": []any{short, s}}
		}
		return s
	case reflect.String:
		if m.Lenient {
			return Schema{"type": []any{"string", "number", "boolean"}}
		}
		return Schema{"type": "string"}
	case reflect.Bool:
		return Schema{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return Schema{"type": "number"}
	case reflect.Interface:
		return Schema{}
	}
	return Schema{"type": "integer"}
}

// orNull also takes null.
func (m *Maker) orNull(s Schema) Schema {
	switch t := s["type"].(type) {
	case string:
		s["type"] = []any{t, "null"}
	case []any:
		s["type"] = append(append([]any{}, t...), "null")
	default:
		if len(s) > 0 {
			return Schema{"anyOf": []any{s, Schema{"type": "null"}}}
		}
	}
	return s
}

// define makes the schema of a struct, once, and returns its name.
func (m *Maker) define(t reflect.Type) string {
	if name, ok := m.names[t]; ok {
		return name
	}
	if m.names == nil {
		m.names, m.Defs = map[reflect.Type]string{}, map[string]Schema{}
	}
	name := t.Name()
	for m.Defs[name] != nil { // of another package
		name = packageOf(t) + "." + name
	}
	s := Schema{"type": "object"}
	m.names[t], m.Defs[name] = name, s
	m.object(t, s)
	return name
}

// object describes a struct.
func (m *Maker) object(t reflect.Type, s Schema) {
	properties, required := Schema{}, []any{}
	if text := m.comment(t).Text; text != "" {
		s["description"] = oneLine(text)
	}
	m.fields(t, properties, &required)
	s["properties"] = properties
	if m.Lenient {
		s["additionalProperties"] = false
	}
	if len(required) > 0 {
		s["required"] = required
	}
}

func (m *Maker) comment(t reflect.Type) Comment {
	if c, ok := m.Comments[packageOf(t)+"."+t.Name()]; ok {
		return c
	}
	return m.Comments[t.Name()]
}

func packageOf(t reflect.Type) string { return t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:] }

// bounds adds the range of a number.
func bounds(s Schema, low, high string) {
	if t := s["type"]; t != "number" && t != "integer" {
		return
	}
	least := "minimum"
	if rest, above := strings.CutPrefix(low, ">"); above {
		low, least = rest, "exclusiveMinimum"
	}
	s[least] = json.Number(low)
	if high != "" {
		s["maximum"] = json.Number(high)
	}
}

// fields adds the fields of a struct.
func (m *Maker) fields(t reflect.Type, properties Schema, required *[]any) {
	for k := range t.NumField() {
		f := t.Field(k)
		key, options, _ := strings.Cut(f.Tag.Get(m.Tag), ",")
		if f.Anonymous && key == "" {
			m.fields(indirect(f.Type), properties, required)
			continue
		}
		if key == "-" || !f.IsExported() || m.Lenient && key == "" {
			continue
		}
		if key == "" {
			key = f.Name
		}
		s := m.Of(f.Type)
		enum := m.Enums[t.Name()+"."+f.Name]
		if words := strings.Fields(f.Tag.Get("oneof")); len(words) > 0 {
			enum = words
		}
		if low, high, ok := strings.Cut(f.Tag.Get("range"), ".."); ok {
			bounds(s, low, high)
		}
		if enum != nil {
			to := s
			if items, ok := s["items"].(Schema); ok {
				to = items
			}
			delete(to, "type")
			to["enum"] = enum
		}
		text := m.comment(t).Fields[f.Name]
		needed := !strings.Contains(options, "omit")
		if m.Lenient {
			needed = strings.HasSuffix(text, "Required.") || strings.Contains(text, " Required. ")
			if !needed {
				s = m.optional(s)
			}
		}
		if needed {
			*required = append(*required, key)
		}
		if rest, ok := strings.CutPrefix(text, f.Name+" "); ok {
			text = key + " " + rest
		}
		if text != "" {
			s["description"] = oneLine(text)
		}
		properties[key] = s
	}
}

// optional has a setting also be null, which is the same as leaving it out.
func (m *Maker) optional(s Schema) Schema {
	if enum, ok := s["enum"].([]string); ok {
		with := make([]any, 0, len(enum)+1)
		for _, e := range enum {
			with = append(with, e)
		}
		s["enum"] = append(with, nil)
	}
	return m.orNull(s)
}

func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Text writes a schema or a document with some.
func Text(v any) (string, error) {
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	err := out.Encode(v)
	return b.String(), err
}
