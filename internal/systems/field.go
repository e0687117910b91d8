package systems

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is an option as a field of Options, whose zero value is the default. Its functions read and write values as
// texts.
type field struct {
	kind   string   // for people
	values []string // all legal values, the default first; nil where they are not listed
	low    float64  // bounds of numbers; of durations in ns
	high   float64
	at     func(*Options) any               // points to the field
	text   func(*Options) string            // "" for the zero value
	take   func(o *Options, v string) error // the error says what v is and what is wanted
}

func number(low, high float64, at func(*Options) *float64) field {
	return field{
		kind: fmt.Sprintf("number from %v to %v", low, high), low: low, high: high,
		at: func(o *Options) any { return at(o) },
		text: func(o *Options) string {
			if x := *at(o); x != 0 {
				return fmt.Sprint(x)
			}
			return ""
		},
		take: func(o *Options, v string) error {
			x, err := strconv.ParseFloat(v, 64)
			if err != nil || !(x >= low && x <= high) {
				return fmt.Errorf("is %q, want a number from %v to %v", v, low, high)
			}
			*at(o) = x
			return nil
		},
	}
}

func whole(low, high int, at func(*Options) *int) field {
	return field{
		kind: fmt.Sprintf("whole number from %d to %d", low, high), low: float64(low), high: float64(high),
		at: func(o *Options) any { return at(o) },
		text: func(o *Options) string {
			if x := *at(o); x != 0 {
				return strconv.Itoa(x)
			}
			return ""
		},
		take: func(o *Options, v string) error {
			x, err := strconv.ParseFloat(v, 64) // journals have written large ones with an exponent
			if err != nil || !(x >= float64(low) && x <= float64(high)) || x != math.Trunc(x) {
				return fmt.Errorf("is %q, want a whole number from %d to %d", v, low, high)
			}
			*at(o) = int(x)
			return nil
		},
	}
}

func span(low, high time.Duration, at func(*Options) *time.Duration) field {
	kind := fmt.Sprintf("duration from %s to %s", short(low), short(high))
	if low == time.Nanosecond {
		kind = "duration up to " + short(high)
	}
	return field{
		kind: kind, low: float64(low), high: float64(high),
		at: func(o *Options) any { return at(o) },
		text: func(o *Options) string {
			if d := *at(o); d != 0 {
				return d.String()
			}
			return ""
		},
		take: func(o *Options, v string) error {
			d, err := time.ParseDuration(v)
			if err != nil || d < low || d > high {
				return fmt.Errorf("is %q, want a %s", v, kind)
			}
			*at(o) = d
			return nil
		},
	}
}

// choice is one of several words, the default first.
func choice(at func(*Options) *string, words ...string) field {
	return field{
		kind: "one of " + strings.Join(words, ", "), values: words,
		at:   func(o *Options) any { return at(o) },
		text: func(o *Options) string { return *at(o) },
		take: func(o *Options, v string) error {
			if !slices.Contains(words, v) {
				return fmt.Errorf("is %q, want one of %s", v, strings.Join(words, ", "))
			}
			*at(o) = v
			return nil
		},
	}
}

// either is one of two words: no is the default, yes sets the field.
func either(no, yes string, at func(*Options) *bool) field {
	return field{
		kind: no + " or " + yes, values: []string{no, yes},
		at: func(o *Options) any { return at(o) },
		text: func(o *Options) string {
			if *at(o) {
				return yes
			}
			return ""
		},
		take: func(o *Options, v string) error {
			if v != no && v != yes {
				return fmt.Errorf("is %q, want %s or %s", v, no, yes)
			}
			*at(o) = v == yes
			return nil
		},
	}
}

// words is a text that check accepts.
func words(kind string, check func(string) error, at func(*Options) *string) field {
	return field{
		kind: kind,
		at:   func(o *Options) any { return at(o) },
		text: func(o *Options) string { return *at(o) },
		take: func(o *Options, v string) error {
			if err := check(v); err != nil {
				return err
			}
			*at(o) = v
			return nil
		},
	}
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
