package systems

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is an option as a field of Options, whose zero value is the default.
type field struct {
	kind   string   // for people
	values []string // all legal values, the default first; nil where they are not listed
	low    float64  // bounds of numbers; of durations in ns
	high   float64
	at     func(*Options) any    // points to the field
	text   func(*Options) string // "" for the zero value
	// take sets the field. v is a text or of the field's type; the error says what it is and what is wanted.
	take func(o *Options, v any) error
}

// typed is a field of a type: how its values are written, read and checked. zero reports a value that is the default.
type typed[T any] struct {
	at   func(*Options) *T
	zero func(T) bool
	text func(T) string
	read func(string) (T, error)
	ok   func(T) bool
}

// field describes the values as kind, with an article where a value is wanted.
func (f typed[T]) field(article, kind string) field {
	return field{
		kind: kind,
		at:   func(o *Options) any { return f.at(o) },
		text: func(o *Options) string {
			if x := *f.at(o); !f.zero(x) {
				return f.text(x)
			}
			return ""
		},
		take: func(o *Options, v any) error {
			x, is := v.(T)
			said, err := fmt.Sprint(v), error(nil)
			if !is {
				x, err = f.read(said)
			}
			if err != nil || !f.ok(x) {
				return fmt.Errorf("is %q, want %s%s", said, article, kind)
			}
			*f.at(o) = x
			return nil
		},
	}
}

// ranged is a field with values between two.
func ranged[T int | float64 | time.Duration](kind string, low, high T, at func(*Options) *T, text func(T) string,
	read func(string) (T, error)) field {
	out := typed[T]{
		at: at, text: text, read: read,
		zero: func(x T) bool { return x == 0 },
		ok:   func(x T) bool { return x >= low && x <= high },
	}.field("a ", kind)
	out.low, out.high = float64(low), float64(high)
	return out
}

func number(low, high float64, at func(*Options) *float64) field {
	return ranged(fmt.Sprintf("number from %v to %v", low, high), low, high, at,
		func(x float64) string { return fmt.Sprint(x) },
		func(v string) (float64, error) { return strconv.ParseFloat(v, 64) })
}

func whole(low, high int, at func(*Options) *int) field {
	return ranged(fmt.Sprintf("whole number from %d to %d", low, high), low, high, at, strconv.Itoa,
		func(v string) (int, error) {
			x, err := strconv.ParseFloat(v, 64) // journals have written large ones with an exponent
			if err == nil && (x != math.Trunc(x) || math.Abs(x) > 1<<53) {
				err = strconv.ErrRange
			}
			return int(x), err
		})
}

func span(low, high time.Duration, at func(*Options) *time.Duration) field {
	kind := fmt.Sprintf("duration from %s to %s", short(low), short(high))
	if low == time.Nanosecond {
		kind = "duration up to " + short(high)
	}
	return ranged(kind, low, high, at, time.Duration.String, time.ParseDuration)
}

// word is a text that ok accepts.
func word(article, kind string, ok func(string) bool, at func(*Options) *string) field {
	return typed[string]{
		at: at, ok: ok,
		zero: func(x string) bool { return x == "" },
		text: func(x string) string { return x },
	}.field(article, kind)
}

// choice is one of several words, the default first.
func choice(at func(*Options) *string, words ...string) field {
	out := word("", "one of "+strings.Join(words, ", "), func(x string) bool { return slices.Contains(words, x) }, at)
	out.values = words
	return out
}

// either is one of two words: no is the default, yes sets the field.
func either(no, yes string, at func(*Options) *bool) field {
	out := typed[bool]{
		at:   at,
		zero: func(x bool) bool { return !x },
		text: func(bool) string { return yes },
		read: func(v string) (bool, error) {
			if v != no && v != yes {
				return false, strconv.ErrSyntax
			}
			return v == yes, nil
		},
		ok: func(bool) bool { return true },
	}.field("", no+" or "+yes)
	out.values = []string{no, yes}
	return out
}

// rising is a list of numbers above 0, each larger than the one before.
func rising(of string, at func(*Options) *[]float64) field {
	return typed[[]float64]{
		at:   at,
		zero: func(x []float64) bool { return len(x) == 0 },
		text: func(x []float64) string {
			return strings.Join(each(x, func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }), ",")
		},
		read: func(v string) (out []float64, err error) {
			for _, text := range strings.Split(v, ",") {
				x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
				if err != nil {
					return nil, err
				}
				out = append(out, x)
			}
			return out, nil
		},
		ok: func(x []float64) bool {
			for k, v := range x {
				if !(v > 0) || math.IsInf(v, 0) || k > 0 && v <= x[k-1] {
					return false
				}
			}
			return true
		},
	}.field("", of+", ascending, separated by commas")
}

// short leaves out the units of a duration that are zero: 24h for 24h0m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
