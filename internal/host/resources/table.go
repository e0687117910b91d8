package resources

import (
	"math"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-serving/sluice/internal/config"
)

// The tags `resource` of package config are the one table of which setting is which field of a resource. It is used
// both ways: fields writes settings as a resource has them, and Take reads them.

// entry is a setting that resources have.
type entry struct {
	reflect.StructField
	name  string // of its field; - where a resource says it in another way
	whole bool   // the field holds a whole number
}

func entryOf(f reflect.StructField) entry {
	name, kind, _ := strings.Cut(f.Tag.Get("resource"), ",")
	return entry{f, name, kind == "whole"}
}

// field is a name of a resource with its value.
type field struct {
	name  string
	value any
}

// object makes a mapping. A field without a name stands for all settings of a struct, to which it points. Fields that
// are zero are left out.
func object(list ...field) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range list {
		v := reflect.ValueOf(f.value)
		if f.name == "" {
			out.Content = append(out.Content, settings(v.Elem()).Content...)
		} else if n := written(v, false); n != nil {
			out.Content = append(out.Content, scalar(f.name), n)
		}
	}
	return out
}

// settings writes those of a struct that resources have.
func settings(v reflect.Value) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode}
	for i := range v.NumField() {
		e := entryOf(v.Type().Field(i))
		if e.name == "" || e.name == "-" {
			continue
		}
		if n := written(v.Field(i), e.whole); n != nil {
			out.Content = append(out.Content, scalar(e.name), n)
		}
	}
	return out
}

// written writes a value as a resource has it; nil for zero.
func written(v reflect.Value, whole bool) *yaml.Node {
	if !v.IsValid() || v.IsZero() {
		return nil
	}
	switch x := v.Interface().(type) {
	case *yaml.Node:
		return x
	case config.Duration:
		return scalar(x.String())
	case config.Size:
		return scalar(memory(int64(x)))
	}
	out := &yaml.Node{Kind: yaml.SequenceNode}
	switch v.Kind() {
	case reflect.Map:
		if v.Len() == 0 {
			return nil
		}
		return plain(v.Interface())
	case reflect.Pointer:
		return written(v.Elem(), false)
	case reflect.Struct:
		return settings(v)
	case reflect.Float64:
		if !whole {
			return scalar(quantity(v.Float()))
		}
		return plain(int64(v.Float()))
	case reflect.Slice:
		for i := range v.Len() {
			switch x := v.Index(i); x.Kind() {
			case reflect.Struct, reflect.Pointer:
				out.Content = append(out.Content, written(x, false))
			default:
				out.Content, out.Style = append(out.Content, plain(x.Interface())), yaml.FlowStyle
			}
		}
		return out
	default:
		return plain(v.Interface())
	}
}

// plain writes a value as the library does.
func plain(v any) *yaml.Node {
	n := new(yaml.Node)
	if err := n.Encode(v); err != nil {
		panic(err) // numbers, texts and maps of texts can be written
	}
	return n
}

func scalar(text string) *yaml.Node {
	n := new(yaml.Node)
	n.SetString(text)
	return n
}

// Take sets the settings of a struct of package config, to which the first argument points, to the fields that a
// resource gives, by the names in their JSON. It leaves alone what the resource does not say.
func Take(settings, resource any) {
	take(reflect.ValueOf(settings).Elem(), reflect.Indirect(reflect.ValueOf(resource)))
}

func take(to, from reflect.Value) {
	for i := range to.NumField() {
		e := entryOf(to.Type().Field(i))
		for k := range from.NumField() {
			if name, _, _ := strings.Cut(from.Type().Field(k).Tag.Get("json"), ","); name == e.name {
				set(to.Field(i), from.Field(k))
			}
		}
	}
}

// number is a quantity of Kubernetes, which this module does not import.
type number interface {
	AsApproximateFloat64() float64
	Value() int64
}

// set copies a field into a setting.
func set(to, from reflect.Value) {
	if from.IsZero() {
		return
	}
	if q, ok := from.Interface().(number); ok {
		if to.Kind() == reflect.Float64 {
			to.SetFloat(math.Round(q.AsApproximateFloat64()*1e9) / 1e9) // 0.7 for 700 thousandths; see quantity
		} else {
			to.SetInt(q.Value())
		}
		return
	}
	switch from.Kind() {
	case reflect.Pointer:
		set(to, from.Elem())
	case reflect.Struct:
		if d := from.FieldByName("Duration"); d.IsValid() && to.Kind() != reflect.Struct {
			to.SetInt(int64(d.Interface().(time.Duration)))
		} else {
			take(to, from)
		}
	case reflect.Slice:
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			set(to.Index(i), from.Index(i))
		}
	case reflect.Map:
		if to.IsNil() {
			to.Set(reflect.MakeMap(to.Type()))
		}
		for k, v := range from.Seq2() {
			to.SetMapIndex(k, v)
		}
	default:
		to.Set(from.Convert(to.Type()))
	}
}

// Path returns where resources have a setting, by its path in a struct of package config: accuracyTarget for
// accuracy_target. had is whether they have it, under its name or in another way.
func Path(settings any, path string) (field string, had bool) {
	t, out := reflect.TypeOf(settings), []string(nil)
	for part := range strings.SplitSeq(path, ".") {
		key, index := part, ""
		if at := strings.IndexByte(part, '['); at >= 0 {
			key, index = part[:at], part[at:]
		}
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			out = append(out, part) // a name in a mapping
			continue
		}
		var e entry
		for f := range t.Fields() {
			if f.Tag.Get("yaml") == key {
				e = entryOf(f)
			}
		}
		if t = e.Type; t == nil {
			return path, false
		}
		had = e.name != ""
		if e.name != "" && e.name != "-" {
			key = e.name
		}
		out = append(out, key+index)
	}
	return strings.Join(out, "."), had
}
