package systems

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setting is a key of a configuration's options and how it is taken up.
type setting struct {
	name string
	set  func(o *Options, value string) error
}

var settings = []setting{
	{"goal", func(o *Options, v string) error {
		o.Planning.Goal = v
		return among(v, "accuracy", "fairness", "blend", "throughput")
	}},
	{"learn", func(o *Options, v string) error {
		o.Learn = v == "true"
		return among(v, "true", "false")
	}},
	{"select", func(o *Options, v string) error {
		o.Planning.Select = v
		return among(v, "any", "most-accurate", "least-accurate")
	}},
	{"place", func(o *Options, v string) error { o.Planning.Place = v; return among(v, "free", "fixed") }},
	{"lambda", func(o *Options, v string) (err error) { o.Planning.Lambda, err = number(v, 0, 1); return err }},
	{"headroom", func(o *Options, v string) (err error) {
		o.Planning.Headroom, err = number(v, 0.1, 10)
		o.Packing.Headroom = o.Planning.Headroom
		return err
	}},
	{"gap", func(o *Options, v string) (err error) { o.Planning.Gap, err = number(v, 0, 1); return err }},
	{"slack", func(o *Options, v string) (err error) { o.Planning.Slack, err = number(v, -1, 1); return err }},
	{"levels", func(o *Options, v string) error {
		x, err := number(v, -1, 1000)
		o.Policies.Levels = int(x)
		return err
	}},
	{"longest", func(o *Options, v string) error {
		x, err := number(v, 1, 256)
		o.Policies.Longest = int(x)
		return err
	}},
	{"batching", func(o *Options, v string) error {
		o.Policies.Variable = v == "variable"
		return among(v, "maximal", "variable")
	}},
	{"shape", func(o *Options, v string) (err error) { o.Policies.Shape, err = number(v, 0.01, 1000); return err }},
	{"step", func(o *Options, v string) (err error) { o.Policies.Step, err = number(v, 0.0001, 1); return err }},
	{"rates", func(o *Options, v string) error {
		o.Policies.Rates = v
		_, err := o.Policies.rates()
		return err
	}},
	{"cells", func(o *Options, v string) error {
		x, err := number(v, 1, 10000)
		o.Routing.Cells = int(x)
		return err
	}},
	{"threshold", func(o *Options, v string) error {
		x, err := number(v, 0, 1e9)
		o.Routing.Threshold = int(x)
		return err
	}},
	{"idle", func(o *Options, v string) error {
		o.Routing.Idle = v == "true"
		return among(v, "true", "false")
	}},
	{"release", func(o *Options, v string) error {
		o.Planning.Oddities = v == "true"
		return among(v, "true", "false")
	}},
	{"tolerance", func(o *Options, v string) (err error) { o.Planning.Tolerance, err = number(v, -1, 1); return err }},
	{"merge", func(o *Options, v string) (err error) { o.Packing.Merge, err = number(v, -1, 0.99); return err }},
	{"packing", func(o *Options, v string) error {
		o.Packing.Balanced, o.Packing.Dense = v == "balanced", v == "dense"
		return among(v, "paper", "balanced", "dense")
	}},
	{"rounding", func(o *Options, v string) error {
		o.Packing.Exact = v == "none"
		return among(v, "paper", "none")
	}},
	{"method", func(o *Options, v string) error {
		o.Pipelines.Method = v
		return among(v, "exact", "as-written", "greedy", "brute")
	}},
	{"placement", func(o *Options, v string) error { o.Pipelines.Placement = v; return among(v, "rented", "paper") }},
	{"spatial", func(o *Options, v string) error {
		o.Pipelines.Alone = v == "false"
		return among(v, "true", "false")
	}},
	{"within", func(o *Options, v string) (err error) { o.Pipelines.Within, err = number(v, 0.1, 1); return err }},
	{"frontends", func(o *Options, v string) error {
		x, err := number(v, 1, 1e6)
		o.Pipelines.Frontends = int(x)
		return err
	}},
	{"alike", func(o *Options, v string) error { o.Pipelines.Alike = v; return nil }},
	{"bound", func(o *Options, v string) error { o.Renting.Bound = v; return among(v, "paper", "fluid") }},
	{"keep", func(o *Options, v string) error {
		o.Keeping.Rule = v
		return among(v, keepers...)
	}},
	{"gamma", func(o *Options, v string) (err error) { o.Keeping.Gamma, err = number(v, 0.001, 0.999); return err }},
	{"head", func(o *Options, v string) (err error) { o.Keeping.Head, err = number(v, 0.0001, 1); return err }},
	{"tail", func(o *Options, v string) (err error) { o.Keeping.Tail, err = number(v, 0.0001, 1); return err }},
	{"alive", func(o *Options, v string) (err error) { o.Keeping.Alive, err = span(v, 7*24*time.Hour); return err }},
	{"linger", func(o *Options, v string) (err error) { o.Keeping.Linger, err = span(v, 7*24*time.Hour); return err }},
	{"tracked", func(o *Options, v string) (err error) {
		o.Keeping.Tracked, err = span(v, 28*24*time.Hour)
		return err
	}},
	{"cold_price", func(o *Options, v string) (err error) {
		o.Keeping.Price, err = span(v, 7*24*time.Hour)
		return err
	}},
	{"alpha", func(o *Options, v string) (err error) { o.Keeping.Alpha, err = number(v, 0.001, 1); return err }},
	{"change", func(o *Options, v string) (err error) { o.Following.Change, err = number(v, 0.01, 10); return err }},
	{"turnoff", func(o *Options, v string) (err error) {
		if v == "0" || v == "0s" {
			o.Following.TurnOff = 0
			return nil
		}
		o.Following.TurnOff, err = span(v, 24*time.Hour)
		return err
	}},
	{"late", func(o *Options, v string) (err error) { o.Renting.Late, err = number(v, -1, 0.99); return err }},
}

// Settings returns the keys that Set knows, each with prefix before it.
func Settings(prefix string) []string {
	return names(settings, func(s setting) string { return prefix + s.name })
}

// Set takes up the options of a configuration.
func (o *Options) Set(options map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(options)) {
		at := slices.IndexFunc(settings, func(s setting) bool { return s.name == k })
		if at < 0 {
			return fmt.Errorf("option %q does not exist: use one of %s", k, strings.Join(Settings(""), ", "))
		}
		if err := settings[at].set(o, options[k]); err != nil {
			return fmt.Errorf("option %q: %w", k, err)
		}
	}
	return nil
}

func among(v string, known ...string) error {
	if !slices.Contains(known, v) {
		return fmt.Errorf("%q is not one of %s", v, strings.Join(known, ", "))
	}
	return nil
}

func number(v string, low, high float64) (float64, error) {
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x >= low && x <= high) {
		return 0, fmt.Errorf("is %q, want a number from %v to %v", v, low, high)
	}
	return x, nil
}

func span(v string, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if err != nil || d < time.Millisecond || d > most {
		return 0, fmt.Errorf("is %q, want a duration from 1ms to %v", v, most)
	}
	return d, nil
}
