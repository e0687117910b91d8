package server

import (
	"encoding/json"
	"slices"
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// appendProto writes a message as JSON in the form that existing clients read: names as in the message, integers of 64
// bits as numbers, and every field but messages that are not set. protojson writes other names and strings, which
// clients of the REST protocol do not understand.
func appendProto(b []byte, m protoreflect.Message) []byte {
	b = append(b, '{')
	first := true
	fields := m.Descriptor().Fields()
	for k := range fields.Len() {
		f := fields.Get(k)
		if (f.Message() != nil && !f.IsList() && !f.IsMap() || f.ContainingOneof() != nil) && !m.Has(f) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(strconv.AppendQuote(b, string(f.Name())), ':')
		b = appendProtoField(b, f, m.Get(f))
	}
	return append(b, '}')
}

func appendProtoField(b []byte, f protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	switch {
	case f.IsMap():
		return appendProtoMap(b, f, v.Map())
	case f.IsList():
		b = append(b, '[')
		list := v.List()
		for k := range list.Len() {
			if k > 0 {
				b = append(b, ',')
			}
			b = appendProtoValue(b, f, list.Get(k))
		}
		return append(b, ']')
	}
	return appendProtoValue(b, f, v)
}

// appendProtoMap writes the entries in the order of their keys.
func appendProtoMap(b []byte, f protoreflect.FieldDescriptor, m protoreflect.Map) []byte {
	byKey := make(map[string]protoreflect.Value, m.Len())
	var keys []string
	m.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		byKey[k.String()] = v
		keys = append(keys, k.String())
		return true
	})
	slices.Sort(keys)
	b = append(b, '{')
	for at, k := range keys {
		if at > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, k), ':')
		b = appendProtoValue(b, f.MapValue(), byKey[k])
	}
	return append(b, '}')
}

func appendProtoValue(b []byte, f protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return appendProto(b, v.Message())
	case protoreflect.EnumKind:
		if e := f.Enum().Values().ByNumber(v.Enum()); e != nil {
			return appendText(b, string(e.Name()))
		}
		return strconv.AppendInt(b, int64(v.Enum()), 10)
	case protoreflect.StringKind:
		return appendText(b, v.String())
	case protoreflect.BytesKind:
		return appendText(b, string(v.Bytes()))
	case protoreflect.BoolKind:
		return strconv.AppendBool(b, v.Bool())
	}
	return append(b, v.String()...) // a number
}

func appendText(b []byte, s string) []byte {
	q, err := json.Marshal(s)
	if err != nil { // a string always marshals
		return append(b, `""`...)
	}
	return append(b, q...)
}
