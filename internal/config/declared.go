package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// eachSetting calls f for the settings of a struct, and of those in it, with their tags and paths.
func eachSetting(v reflect.Value, path string, f func(v reflect.Value, tag reflect.StructTag, path string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachSetting(v.Elem(), path, f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachSetting(v.Index(i), at(path, i), f)
		}
	case reflect.Struct:
		for t, x := range v.Fields() {
			if key := t.Tag.Get("yaml"); key != "" {
				f(x, t.Tag, join(path, key))
				eachSetting(x, join(path, key), f)
			}
		}
	}
}

// declaredDefaults sets the settings of a struct that the file does not give to what their tags say.
func (f *File) declaredDefaults(of any) {
	eachSetting(reflect.ValueOf(of), "", func(v reflect.Value, tag reflect.StructTag, path string) {
		if text := tag.Get("default"); text != "" && v.IsZero() && !f.has(path) {
			v.Set(declared(v.Type(), text))
		}
	})
}

// settings checks those of a struct that are given or have a default against what their tags say: `oneof`
// lists the words that there are, `range` is LOW..HIGH, of which HIGH may be missing, and >LOW leaves out LOW itself.
// Numbers that rates, costs and values are multiplied with end at 1e12, factors at 1e6: no product of a few of them is
// beyond what a number can be.
func (c *checker) settings(of any) {
	eachSetting(reflect.ValueOf(of), "", func(v reflect.Value, tag reflect.StructTag, path string) {
		if v.IsZero() && !c.f.has(path) {
			return
		}
		if words := strings.Fields(tag.Get("oneof")); len(words) > 0 {
			c.oneOf(v, words, path)
		}
		low, high, ok := strings.Cut(tag.Get("range"), "..")
		if !ok {
			return
		}
		least, above := strings.CutPrefix(low, ">")
		x, bottom := amount(v), amount(declared(v.Type(), least))
		within := x > bottom || x == bottom && !above
		want := "at least " + least
		if above {
			want = "more than " + least
		}
		if high != "" {
			within = within && x <= amount(declared(v.Type(), high))
			want = map[bool]string{false: least + " to " + high, true: want + ", at most " + high}[above]
		}
		c.need(within, path, "is %v, want %s", v, want)
	})
}

// oneOf checks a word, or those of a list.
func (c *checker) oneOf(v reflect.Value, words []string, path string) {
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			c.oneOf(v.Index(i), words, at(path, i))
		}
		return
	}
	c.need(slices.Contains(words, v.String()), path, "is %.40q, want %s", v, oneOf(words))
}

func amount(v reflect.Value) float64 {
	if v.CanInt() {
		return float64(v.Int())
	}
	return v.Float()
}

// declared reads a value in a tag. What is wrong there is a mistake of the program, which any file brings to light.
func declared(t reflect.Type, value string) reflect.Value {
	v := reflect.New(t)
	err := error(nil)
	switch x := v.Interface().(type) {
	case text:
		err = x.parse(value)
	case *string:
		*x = value
	case *int:
		*x, err = strconv.Atoi(value)
	case *float64:
		*x, err = strconv.ParseFloat(value, 64)
	default:
		err = fmt.Errorf("there are no defaults of %v", t)
	}
	if err != nil {
		panic(err)
	}
	return v.Elem()
}
