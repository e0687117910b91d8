package systems

import (
	"slices"

	"github.com/sluice-serving/sluice/policy/route"
)

// Policies tunes the planners that make policies in advance.
type Policies struct {
	Levels   int       // of slack; 0 means the planner's own, negative one for every latency
	Longest  int       // longest queue with states of its own; 0 means the planner's own
	Variable bool      // batches may leave queries behind
	Balance  string    // roundrobin (default) or shortestqueue: what the router does
	Shape    float64   // of gamma gaps between arrivals; 0 means Poisson
	Reacts   bool      // to the pattern of arrivals that is seen, in the place of Shape
	Step     float64   // accuracy by which neighbouring policies may differ; 0 means the planner's own
	Known    bool      // the load is known: one policy, for the demand that is asked for
	Rates    []float64 // ascending, in queries/s: those to make policies for; none leaves it to the planner
}

var policiesOptions = []Option{
	{
		Name: "levels",
		Doc: "is the number of steps into which the time left is cut; negative for one step at each latency of the " +
			"profile",
		Readers: by(Planner, "100", "ramsis"),
		field:   whole(-1, 1000, func(o *Options) *int { return &o.Policies.Levels }),
	},
	{
		Name:    "longest",
		Doc:     "is the longest queue with states of its own, at most the largest batch",
		Readers: by(Planner, "32", "ramsis"),
		field:   whole(1, 256, func(o *Options) *int { return &o.Policies.Longest }),
	},
	{
		Name: "batching",
		Doc: "says whether batches take all that waits and is in time, or may leave queries behind; the latter takes " +
			"far longer to plan",
		Readers: by(Planner, "maximal", "ramsis"),
		field:   either("maximal", "variable", func(o *Options) *bool { return &o.Policies.Variable }),
	},
	{
		Name:    "balance",
		Doc:     "is the router that policies are made for",
		Readers: by(Planner, "roundrobin", "ramsis"),
		field: choice(func(o *Options) *string { return &o.Policies.Balance }, route.NewRoundRobin().Name(),
			route.NewShortestQueue().Name()),
	},
	{
		Name:    "shape",
		Doc:     "is the shape of gamma gaps between arrivals, below 1 for loads that come in bursts",
		Readers: by(Planner, "Poisson arrivals", "ramsis"),
		field:   number(0.01, 1000, func(o *Options) *float64 { return &o.Policies.Shape }),
	},
	{
		Name: "reacts",
		Doc: "makes policies for arrivals as uneven as they are seen, in the place of shape, and new ones when that " +
			"changes",
		Readers: by(Planner, "false", "ramsis"),
		field:   either("false", "true", func(o *Options) *bool { return &o.Policies.Reacts }),
	},
	{
		Name:    "step",
		Doc:     "is the accuracy by which policies for neighbouring rates may differ",
		Readers: by(Planner, "0.01", "ramsis"),
		field:   number(0.0001, 1, func(o *Options) *float64 { return &o.Policies.Step }),
	},
	{
		Name: "rates",
		Doc:  "are the rates that policies are made for",
		Readers: slices.Concat(by(Planner, "spaced by step", "ramsis"),
			by(Planner, "those at which the choice changes", "jellyfish"),
			by(Planner, "20 up to what is carried", "modelswitching"),
			by(Planner, "what is carried", "infaas-target")),
		field: rising("rates in queries/s", func(o *Options) *[]float64 { return &o.Policies.Rates }),
	},
	{
		Name:    "known_load",
		Doc:     "makes policies for the demand alone, for a load that is known and does not change",
		Readers: by(Planner, "false", "ramsis", "tidal", "jellyfish", "modelswitching", "infaas-target"),
		field:   either("false", "true", func(o *Options) *bool { return &o.Policies.Known }),
	},
}
