package systems

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/planner/fluid"
	"github.com/sluice-serving/sluice/papers/kairos"
)

// Renting tunes the planner that chooses machines.
type Renting struct {
	Budget float64 // $/h; 0 for none
	Bound  string  // paper (default), fluid or queue: what pools are compared by
	Trials int     // pools that the bound queue has simulated; 0 means the planner's own, negative none
	// fraction of the queries that the bounds fluid and queue leave out; 0 means what the objective allows, negative
	// none
	Late float64
	// share of the time in which pools on trial may break the objective; 0 tries none
	Explore float64
}

var rentingOptions = []Option{
	{
		Name:    "budget",
		Doc:     "is the most that the rented machines may cost, in $/h",
		Direct:  true,
		Readers: by(Planner, "not limited", "kairos", "fluid"),
		field:   number(0, 1e12, func(o *Options) *float64 { return &o.Renting.Budget }),
	},
	{
		Name: "bound",
		Doc: "says what pools of machines are ranked by: the paper's upper bound, a linear program over the sizes " +
			"of queries, or that program less what queues take from it",
		Readers: by(Planner, "paper", "kairos"),
		field:   choice(func(o *Options) *string { return &o.Renting.Bound }, "paper", "fluid", "queue"),
	},
	{
		Name: "trials",
		Doc: "is how many pools with the highest estimates of the bound queue, or how many plans, are simulated " +
			"before one is chosen; negative for none",
		Readers: slices.Concat(by(Planner, fmt.Sprint(kairos.DefaultTrials), "kairos"),
			by(Planner, fmt.Sprint(fluid.DefaultTrials), "fluid")),
		field: whole(-1, 1000, func(o *Options) *int { return &o.Renting.Trials }),
	},
	{
		Name:    "late",
		Doc:     "is the fraction of the queries that the bounds fluid and queue leave out; negative for none",
		Readers: by(Planner, "what the objective's percentile allows", "kairos"),
		field:   number(-1, 0.99, func(o *Options) *float64 { return &o.Renting.Late }),
	},
	{
		Name: "explore",
		Doc: "is the fraction of the time in which pools of machines that are on trial may break the objective; 0 " +
			"tries none",
		Readers: slices.Concat(by(Planner, "0", "kairos"), by(Scaler, "0", "trypools")),
		field:   number(0, 1, func(o *Options) *float64 { return &o.Renting.Explore }),
	},
}
