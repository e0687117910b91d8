package systems

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Every field of Options is an option, and of no more than one.
func TestEveryFieldIsAnOption(t *testing.T) {
	var o Options
	fields := make(map[any]string)
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		for n := range v.NumField() {
			f, name := v.Field(n), path+v.Type().Field(n).Name
			if f.Kind() == reflect.Struct {
				walk(f, name+".")
			} else {
				fields[f.Addr().Interface()] = name
			}
		}
	}
	walk(reflect.ValueOf(&o).Elem(), "")
	for at := range table {
		p := table[at].at(&o)
		if fields[p] == "" {
			t.Errorf("option %s is another option's field, or none", table[at].Name)
		}
		delete(fields, p)
	}
	for _, name := range fields {
		t.Errorf("Options.%s is no option", name)
	}
}

// Every entry of the table has all texts for users, and names existing components.
func TestTheTableIsComplete(t *testing.T) {
	seen := make(map[string]bool)
	for at := range table {
		o := &table[at]
		if seen[o.Name] {
			t.Errorf("two options are called %s", o.Name)
		}
		seen[o.Name] = true
		if o.Doc == "" || strings.HasSuffix(o.Doc, ".") || o.Type() == "" || len(o.Readers) == 0 {
			t.Errorf("option %s: %+v", o.Name, o)
		}
		for _, r := range o.Readers {
			if !slices.ContainsFunc(Components(r.Kind), func(p Component) bool { return p.Name == r.Name }) {
				t.Errorf("option %s is read by the %s %q, which does not exist", o.Name, r.Kind, r.Name)
			}
			if r.Default == "" || o.values != nil && r.Default != o.values[0] {
				t.Errorf("option %s of the %s %s: default %q of %v", o.Name, r.Kind, r.Name, r.Default, o.values)
			}
		}
	}
}

// some returns a legal value of an option, as text.
func some(rng *rand.Rand, o *Option) string {
	between := func() float64 { return o.low + rng.Float64()*(o.high-o.low) }
	switch o.at(&Options{}).(type) {
	case *float64:
		return fmt.Sprint(between())
	case *int:
		return strconv.Itoa(int(o.low) + rng.IntN(int(o.high-o.low)+1))
	case *time.Duration:
		return time.Duration(between()).String()
	}
	if o.values != nil {
		return o.values[rng.IntN(len(o.values))]
	}
	return map[string]string{"rates": "1, 20.5,300", "alike": `a "large" type`}[o.Name]
}

// Options that are shown can be given back: for every system, and with random further settings.
func TestOptionsAreShownAsTheyAreGiven(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range All() {
		for round := range 20 {
			o := s.Options
			if round > 0 {
				given := make(map[string]string)
				for at := range table {
					if rng.IntN(3) == 0 {
						given[table[at].Name] = some(rng, &table[at])
					}
				}
				if err := o.Set(given); err != nil {
					t.Fatalf("%v: %v", given, err)
				}
			}
			for shown, given := range map[string]map[string]string{"given": o.Given(), "shown": parsed(t, o.String())} {
				var again Options
				if err := again.Set(given); err != nil || !reflect.DeepEqual(again, o) {
					t.Fatalf("%s, %s: %v becomes %v: %v", s.Name, shown, o, again, err)
				}
			}
		}
	}
}

// A value of an option's own type is taken as its text is, and refused beyond the option's bounds.
func TestTypedValuesAreTaken(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for at := range table {
		o := &table[at]
		var want, got, kept Options
		if err := want.Set(map[string]string{o.Name: some(rng, o)}); err != nil {
			t.Fatal(err)
		}
		value := reflect.ValueOf(o.at(&want)).Elem()
		if err := take(&got, map[string]any{o.Name: value.Interface()}).orNil(); err != nil ||
			!reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v becomes %v: %v", o.Name, value, got, err)
		}
		beyond := map[string]any{o.Name: []any{o.Name}} // of no option's type
		switch value.Interface().(type) {
		case float64:
			beyond[o.Name] = 2 * o.high
		case int:
			beyond[o.Name] = int(o.high) + 1
		case time.Duration:
			beyond[o.Name] = time.Duration(o.low) - 1
		case string:
			beyond[o.Name] = ""
		case []float64:
			beyond[o.Name] = []float64{2, 1}
		}
		if err := take(&kept, beyond).orNil(); err == nil || !reflect.DeepEqual(kept, Options{}) {
			t.Errorf("%s: %v was taken", o.Name, beyond[o.Name])
		}
	}
}

// parsed takes apart what String writes.
func parsed(t *testing.T, text string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for text != "" {
		name, rest, _ := strings.Cut(text, "=")
		value, err := strconv.QuotedPrefix(rest)
		if err == nil {
			text = strings.TrimPrefix(rest[len(value):], " ")
			value, err = strconv.Unquote(value)
		} else {
			value, text, _ = strings.Cut(rest, " ")
			err = nil
		}
		if err != nil {
			t.Fatal(err)
		}
		out[name] = value
	}
	return out
}

// Values that an option does not take are refused, and leave it as it was.
func TestValuesAreChecked(t *testing.T) {
	for at := range table {
		o := &table[at]
		bad := []string{"none of these", "NaN", "1,0", "1e99", "-99999h"}
		switch o.Name {
		case "alike": // any name
			bad = []string{""}
		case "rates": // of any size
			bad = []string{"none of these", "NaN", "1,0", "-5", "1,,2"}
		}
		for _, v := range bad {
			var got Options
			err := got.Set(map[string]string{o.Name: v})
			if err == nil || !reflect.DeepEqual(got, Options{}) {
				t.Errorf("%s: %q was taken", o.Name, v)
			} else if text := fmt.Sprintf("option %q is %q, want ", o.Name, v); !strings.HasPrefix(err.Error(), text) {
				t.Errorf("%v", err)
			}
		}
	}
	var o Options
	err := o.Set(map[string]string{"gama": "1", "cells": "2.5", "step": "0.1"})
	if err == nil || err.Error() != `option "cells" is "2.5", want a whole number from 1 to 10000
option "gama" does not exist (did you mean "gamma"?): 'sluice systems NAME' lists those of a system` {
		t.Errorf("%v", err)
	}
	if !maps.Equal(o.Given(), map[string]string{"step": "0.1"}) {
		t.Errorf("taken were %v", o)
	}
}
