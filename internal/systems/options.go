package systems

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options tune components. The zero value means every component's defaults. Every field is an entry of the table of
// options.
type Options struct {
	BatchSize int           // items
	Timeout   time.Duration // that the first query of a batch waits
	Replan    time.Duration // between plans
	Learn     bool          // latency is learned while serving, starting from measurements if there are any
	Release   bool          // components follow their authors' published code where it differs from the paper
	Planning  Planning
	Policies  Policies
	Renting   Renting
	Packing   Packing
	Pipelines Pipelines
	Routing   Routing
	Following Following
	KeepAlive KeepAliveOptions
}

// table lists all options, in the order in which they are shown.
var table = slices.Concat(generalOptions, planningOptions, policiesOptions, rentingOptions, packingOptions,
	pipelinesOptions, routingOptions, followingOptions, keepAliveOptions)

var generalOptions = []Option{
	{
		Name:    "batch",
		Doc:     "is the number of items that a batch is to have",
		Direct:  true,
		Readers: by(Batcher, "the instance's batch limit", "fixed"),
		field:   whole(1, 1<<20, func(o *Options) *int { return &o.BatchSize }),
	},
	{
		Name:    "timeout",
		Doc:     "is how long the first query of a batch waits for others",
		Direct:  true,
		Readers: by(Batcher, "the objective less the run time", "filltimeout"),
		field:   span(time.Nanosecond, week, func(o *Options) *time.Duration { return &o.Timeout }),
	},
	{
		Name: "replan", Direct: true,
		Doc: "is how often plans are made, and of a scaler that plans when something has changed the least time " +
			"between two plans",
		Readers: slices.Concat(by(Scaler, "30s", "periodic", "replan"),
			by(Scaler, "5s", "mixshift", "trypools", "anticipate"),
			by(Scaler, "1s", "ratebands", "complexity", "arrivals")),
		field: span(time.Nanosecond, 100*week, func(o *Options) *time.Duration { return &o.Replan }),
	},
	{
		Name:    "learn",
		Doc:     "learns latency while serving, with a profile to begin from or without",
		Readers: by(Engine, "false", "engine"),
		field:   either("false", "true", func(o *Options) *bool { return &o.Learn }),
	},
	{
		Name:    "release",
		Doc:     "does as the authors' published code does, where that differs from the paper",
		Readers: slices.Concat(by(Planner, "false", "infaas", "infless"), by(Batcher, "false", "aimd")),
		field:   either("false", "true", func(o *Options) *bool { return &o.Release }),
	},
}

const week = 7 * 24 * time.Hour

// Table returns all options, in the order in which they are shown.
func Table() []Option { return slices.Clone(table) }

// Keys returns the keys of all options below system in a configuration.
func Keys() []string { return each(table, func(o Option) string { return o.Key() }) }

// Given returns the options that are not defaults, by name, as texts for Set.
func (o Options) Given() map[string]string {
	out := make(map[string]string)
	for at := range table {
		if v := table[at].text(&o); v != "" {
			out[table[at].Name] = v
		}
	}
	return out
}

// String lists the options that are not defaults, as name=value, in the order of the table.
func (o Options) String() string {
	var out []string
	for at := range table {
		v := table[at].text(&o)
		if strings.ContainsAny(v, " \"") {
			v = strconv.Quote(v)
		}
		if v != "" {
			out = append(out, table[at].Name+"="+v)
		}
	}
	return strings.Join(out, " ")
}

// MarshalJSON writes the options that are not defaults, by name.
func (o Options) MarshalJSON() ([]byte, error) { return json.Marshal(o.Given()) }

// Set sets options by name, whether any component reads them or not. Options that are not named keep their values. The
// error is an OptionErrors; wrong values are not set.
func (o *Options) Set(given map[string]string) error { return take(o, given).orNil() }

// take sets options to texts, or to values of their own types.
func take[V any](o *Options, given map[string]V) (out OptionErrors) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		x := option(name)
		if x == nil {
			out = append(out, noOption(name))
			continue
		}
		if err := x.take(o, given[name]); err != nil {
			out = append(out, &OptionError{Option: name, Key: x.Key(), Text: err.Error()})
		}
	}
	return out
}

// option returns the entry of a name, or nil.
func option(name string) *Option {
	at := slices.IndexFunc(table, func(o Option) bool { return o.Name == name })
	if at < 0 {
		return nil
	}
	return &table[at]
}
