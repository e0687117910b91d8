package systems

// Pipelines tunes the planners of graphs of models.
type Pipelines struct {
	Method    string  // of planner scrooge: exact (default), as-written, greedy or brute
	Placement string  // of planner scrooge: rented (default), for the fewest whole machines, or paper
	Alone     bool    // of planner scrooge: one batch at a time
	Within    float64 // of planner scrooge: the fraction of the objective that is planned with; 0 means all
	Frontends int     // of planner nexus: workers for stages that its device type does not run; 0 means 1
	Alike     string  // of planner nexus: the device type that all machines count as; "" means the most frequent one
	// AccuracyWeight, CostWeight and BatchWeight are those of planner ipa; 0 means its own.
	AccuracyWeight, CostWeight, BatchWeight float64
}

var pipelinesOptions = []Option{
	{
		Name: "method",
		Doc: "is how a graph's stages are allocated: exactly, by the paper's two programs, greedily, or by trying " +
			"everything",
		Readers: by(Planner, "exact", "scrooge"),
		field: choice(func(o *Options) *string { return &o.Pipelines.Method }, "exact", "as-written", "greedy",
			"brute"),
	},
	{
		Name:    "placement",
		Doc:     "says whether allocations are placed on the fewest whole machines, or by the paper's best fit",
		Readers: by(Planner, "rented", "scrooge"),
		field:   choice(func(o *Options) *string { return &o.Pipelines.Placement }, "rented", "paper"),
	},
	{
		Name:    "spatial",
		Doc:     "says whether a machine may run several batches at once",
		Readers: by(Planner, "true", "scrooge"),
		field:   either("true", "false", func(o *Options) *bool { return &o.Pipelines.Alone }),
	},
	{
		Name:    "within",
		Doc:     "is the fraction of the objective that is planned with; the rest is for items that wait behind others",
		Readers: by(Planner, "1", "scrooge"),
		field:   number(0.1, 1, func(o *Options) *float64 { return &o.Pipelines.Within }),
	},
	{
		Name:    "frontends",
		Doc:     "is the number of workers for stages that the device type planned for does not run",
		Readers: by(Planner, "1", "nexus"),
		field:   whole(1, 1e6, func(o *Options) *int { return &o.Pipelines.Frontends }),
	},
	{
		Name:    "alike",
		Doc:     "is the device type that all machines are taken for",
		Readers: by(Planner, "the type that serves most stages", "nexus"),
		field: word("the ", "name of a device type", func(v string) bool { return v != "" },
			func(o *Options) *string { return &o.Pipelines.Alike }),
	},
	{
		Name:    "accuracy_weight",
		Doc:     "is the worth of a stage's most accurate variant over its least accurate one",
		Readers: by(Planner, "10", "ipa"),
		field:   number(0, 1e6, func(o *Options) *float64 { return &o.Pipelines.AccuracyWeight }),
	},
	{
		Name:    "cost_weight",
		Doc:     "is the cost of a worker of the cheapest type; others count in proportion to their price",
		Readers: by(Planner, "0.5", "ipa"),
		field:   number(0, 1e6, func(o *Options) *float64 { return &o.Pipelines.CostWeight }),
	},
	{
		Name:    "batch_weight",
		Doc:     "is the cost of one item more in the batches of a stage",
		Readers: by(Planner, "0.000001", "ipa"),
		field:   number(0, 1e6, func(o *Options) *float64 { return &o.Pipelines.BatchWeight }),
	},
}
