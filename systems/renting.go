package systems

// Renting tunes the planner that chooses machines.
type Renting struct {
	Budget float64 // $/h; 0 for none
	Bound  string  // paper (default) or fluid: the bound that pools are compared by
	// fraction of the queries that the bound fluid leaves out; 0 means what the objective allows, negative none
	Late float64
}

var rentingOptions = []Option{
	{
		Name:    "budget",
		Doc:     "is the most that the rented machines may cost, in $/h",
		Direct:  true,
		Readers: by(Planner, "not limited", "kairos"),
		field:   number(0, 1e12, func(o *Options) *float64 { return &o.Renting.Budget }),
	},
	{
		Name: "bound",
		Doc: "says what pools of machines are ranked by: the paper's upper bound, or a linear program over the sizes " +
			"of queries",
		Readers: by(Planner, "paper", "kairos"),
		field:   choice(func(o *Options) *string { return &o.Renting.Bound }, "paper", "fluid"),
	},
	{
		Name:    "late",
		Doc:     "is the fraction of the queries that the bound fluid leaves out; negative for none",
		Readers: by(Planner, "what the objective's percentile allows", "kairos"),
		field:   number(-1, 0.99, func(o *Options) *float64 { return &o.Renting.Late }),
	},
}
