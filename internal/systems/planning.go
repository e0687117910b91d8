package systems

import "slices"

// Planning tunes planners that plan for a demand on given machines.
type Planning struct {
	Select    string  // any (default), most-accurate or least-accurate: which variants of an app may be used
	Place     string  // free (default) or fixed: whether workers may change the app they serve
	Goal      string  // accuracy (default), fairness, blend or throughput
	Lambda    float64 // of goal blend: the weight of the lowest accuracy, in (0, 1)
	Headroom  float64 // factor on the demand; 0 means the planner's own
	Gap       float64 // relative; 0 means the planner's own
	Tolerance float64 // accuracy given up rather than loading other models; 0: the planner's own, negative: none
	Slack     float64 // accuracy given up for head-room; 0: the planner's own, negative: none
	Bursts    bool    // head-room follows how unevenly queries arrive
	Single    bool    // batches of one
	Equal     bool    // equal shares whatever an instance carries
	Apart     bool    // a machine holds variants of one stage only
	Certain   bool    // the demand of the last seconds alone, without what may come
}

var planningOptions = []Option{
	{
		Name:    "apart",
		Doc:     "gives each machine variants of one stage only, to see what sharing its time is worth",
		Readers: by(Planner, "false", "fluid"),
		field:   either("false", "true", func(o *Options) *bool { return &o.Planning.Apart }),
	},
	{
		Name:    "certain",
		Doc:     "plans for what came in the last seconds alone, to see what forecasts are worth",
		Readers: slices.Concat(by(Planner, "false", "fluid"), by(Scaler, "false", "anticipate")),
		field:   either("false", "true", func(o *Options) *bool { return &o.Planning.Certain }),
	},
	{
		Name:    "goal",
		Doc:     "is what a plan maximises: the mean accuracy, the lowest accuracy of an app, both, or what is carried",
		Readers: by(Planner, "accuracy", "proteus"),
		field: choice(func(o *Options) *string { return &o.Planning.Goal }, "accuracy", "fairness", "blend",
			"throughput"),
	},
	{
		Name:    "lambda",
		Doc:     "is the weight of the lowest accuracy in the goal blend; the mean accuracy has the rest",
		Readers: by(Planner, "0.5", "proteus"),
		field:   number(0, 1, func(o *Options) *float64 { return &o.Planning.Lambda }),
	},
	{
		Name: "select",
		Doc: "says which variants of an app a plan may use, of those that meet the objective; the planners scrooge " +
			"and loki have no least-accurate",
		Readers: by(Planner, "any", "proteus", "scrooge", "loki"),
		field: choice(func(o *Options) *string { return &o.Planning.Select }, "any", "most-accurate",
			"least-accurate"),
	},
	{
		Name:    "place",
		Doc:     "says whether workers may change the app that they serve",
		Readers: by(Planner, "free", "proteus"),
		field:   choice(func(o *Options) *string { return &o.Planning.Place }, "free", "fixed"),
	},
	{
		Name: "headroom",
		Doc:  "is the factor on the demand that is planned for",
		Readers: slices.Concat(by(Planner, "1.05", "proteus", "jellyfish", "loki"), by(Planner, "1/0.95", "infaas"),
			by(Planner, "1", "infless", "scrooge", "nexus", "ipa")),
		field: number(0.1, 10, func(o *Options) *float64 { return &o.Planning.Headroom }),
	},
	{
		Name:    "gap",
		Doc:     "is the relative distance to the best plan at which a plan is good enough",
		Readers: by(Planner, "0.005", "proteus"),
		field:   number(0, 1, func(o *Options) *float64 { return &o.Planning.Gap }),
	},
	{
		Name: "tolerance",
		Doc: "is the mean accuracy, relative to each app's best, that is given up rather than loading other models; " +
			"negative for none",
		Readers: by(Planner, "0.001", "proteus"),
		field:   number(-1, 1, func(o *Options) *float64 { return &o.Planning.Tolerance }),
	},
	{
		Name: "slack",
		Doc: "is the mean accuracy, relative to each app's best, that is given up for more head-room; negative for " +
			"none",
		Readers: by(Planner, "0.0005", "proteus"),
		field:   number(-1, 1, func(o *Options) *float64 { return &o.Planning.Slack }),
	},
	{
		Name:    "bursts",
		Doc:     "plans more head-room the more unevenly queries arrive, as far as the machines carry it",
		Readers: by(Planner, "false", "proteus"),
		field:   either("false", "true", func(o *Options) *bool { return &o.Planning.Bursts }),
	},
	{
		Name:    "single",
		Doc:     "plans for batches of one",
		Readers: by(Planner, "false", "proteus", "infless"),
		field:   either("false", "true", func(o *Options) *bool { return &o.Planning.Single }),
	},
	{
		Name:    "shares",
		Doc:     "says whether the instances of a stage get the shares that they can carry, or equal ones",
		Readers: by(Planner, "planned", "proteus"),
		field:   either("planned", "equal", func(o *Options) *bool { return &o.Planning.Equal }),
	},
}
