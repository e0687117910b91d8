package config

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML writes the file as Parse reads it, for programs that make configurations. Fields that are zero are left out, and
// so have their defaults when it is read. It does not check the file: Parse does.
func (f *File) YAML() ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(node(reflect.ValueOf(f).Elem())); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if b.Len() > MaxBytes {
		return nil, fmt.Errorf("configuration: it has %d bytes, more than the limit of %d", b.Len(), MaxBytes)
	}
	return b.Bytes(), nil
}

// node returns a value as YAML; nil for one that is left out.
func node(v reflect.Value) *yaml.Node {
	if v.IsZero() {
		return nil
	}
	if t, ok := v.Interface().(fmt.Stringer); ok { // Duration, Size
		return textNode(t.String())
	}
	switch v.Kind() {
	case reflect.Pointer:
		return written(v.Elem())
	case reflect.Struct:
		return fieldNodes(v)
	case reflect.Slice:
		out := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			out.Content = append(out.Content, written(v.Index(i)))
		}
		return out
	case reflect.Map:
		out := &yaml.Node{Kind: yaml.MappingNode}
		for _, k := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int {
			return strings.Compare(a.String(), b.String())
		}) {
			out.Content = append(out.Content, textNode(k.String()), written(v.MapIndex(k)))
		}
		return out
	case reflect.String:
		return textNode(v.String())
	case reflect.Bool:
		return scalarNode("!!bool", strconv.FormatBool(v.Bool()))
	case reflect.Float64:
		return scalarNode("!!float", strconv.FormatFloat(v.Float(), 'g', -1, 64))
	default:
		return scalarNode("!!int", strconv.FormatInt(v.Int(), 10))
	}
}

func fieldNodes(v reflect.Value) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode}
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("yaml")
		if key == "" {
			continue
		}
		if n := node(v.Field(i)); n != nil {
			out.Content = append(out.Content, textNode(key), n)
		}
	}
	return out
}

// written is node for values that have to be there even if they are zero: entries of lists and maps.
func written(v reflect.Value) *yaml.Node {
	if n := node(v); n != nil {
		return n
	}
	switch v.Kind() {
	case reflect.Struct:
		return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	case reflect.String:
		return textNode("")
	case reflect.Float64, reflect.Int, reflect.Int32, reflect.Int64:
		if t, ok := v.Interface().(fmt.Stringer); ok {
			return textNode(t.String())
		}
		return scalarNode("!!int", "0")
	default:
		return scalarNode("!!bool", "false")
	}
}

func textNode(s string) *yaml.Node {
	n := new(yaml.Node)
	n.SetString(s)
	return n
}

func scalarNode(tag, s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: s}
}
