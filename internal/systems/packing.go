package systems

// Packing tunes the planner that packs instances onto parts of machines.
type Packing struct {
	Latency float64 // factor on execution times; 0 means 1
	// fraction of its resources that replacing a function's instances must save; 0 means the planner's own, negative
	// never replaces any
	Merge   float64
	Rule    string // paper (default), balanced or dense: how instances are packed
	Exact   bool   // rates of batches are not rounded
	Fastest bool   // the fastest part for each batch size, on the first machine with room
	Uniform bool   // one batch size and part for all instances of a function, the cheapest for each query
	First   bool   // instances go to the first machine with room
	Threads int    // only parts with so many threads and Percent of an accelerator; 0 of both for all parts
	Percent int
}

var packingOptions = []Option{
	{
		Name: "packing",
		Doc: "says how instances are packed: by the paper's Algorithm 1, by the resources that the load makes " +
			"scarce, or so onto the fewest machines",
		Readers: by(Planner, "paper", "infless"),
		field:   choice(func(o *Options) *string { return &o.Packing.Rule }, "paper", "balanced", "dense"),
	},
	{
		Name:    "rounding",
		Doc:     "says whether the batches of an instance count as a whole number for each second (Eq. 1)",
		Readers: by(Planner, "paper", "infless"),
		field:   either("paper", "none", func(o *Options) *bool { return &o.Packing.Exact }),
	},
	{
		Name: "merge",
		Doc: "is the fraction of its resources that replacing a function's instances must save; negative never " +
			"replaces any",
		Readers: by(Planner, "0.2", "infless"),
		field:   number(-1, 0.99, func(o *Options) *float64 { return &o.Packing.Merge }),
	},
	{
		Name:    "latency_factor",
		Doc:     "is the factor on the execution times that are believed",
		Readers: by(Planner, "1", "infless"),
		field:   number(0.01, 100, func(o *Options) *float64 { return &o.Packing.Latency }),
	},
	{
		Name:    "fastest",
		Doc:     "leaves each batch size the part on which it runs fastest, on the first machine with room",
		Readers: by(Planner, "false", "infless"),
		field:   either("false", "true", func(o *Options) *bool { return &o.Packing.Fastest }),
	},
	{
		Name:    "uniform",
		Doc:     "gives all instances of a function the same batch size and part, the cheapest for each query",
		Readers: by(Planner, "false", "infless"),
		field:   either("false", "true", func(o *Options) *bool { return &o.Packing.Uniform }),
	},
	{
		Name:    "first_fit",
		Doc:     "puts every instance on the first machine with room",
		Readers: by(Planner, "false", "infless"),
		field:   either("false", "true", func(o *Options) *bool { return &o.Packing.First }),
	},
	{
		Name:    "threads",
		Doc:     "leaves only parts with so many threads, and with the accelerator's share that percent says",
		Readers: by(Planner, "all parts", "infless"),
		field:   whole(0, 1<<16, func(o *Options) *int { return &o.Packing.Threads }),
	},
	{
		Name: "percent",
		Doc: "leaves only parts with such a share of an accelerator, and where threads is given with so many " +
			"threads",
		Readers: by(Planner, "all parts", "infless"),
		field:   whole(0, 100, func(o *Options) *int { return &o.Packing.Percent }),
	},
}
