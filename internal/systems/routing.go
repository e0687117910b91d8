package systems

// Routing tunes the routers that take parameters.
type Routing struct {
	Cells     int  // of router matching: how many groups of instances are matched on their own; 0 means one
	Threshold int  // of router threshold: queries of more items go to the base type
	Idle      bool // of router fcfs: an instance takes one query at a time
	Free      bool // of router priced: the time of machines costs nothing
	Eager     bool // of router priced: no batch waits
	Final     bool // of router priced: every answer is the last
}

var routingOptions = []Option{
	{
		Name:    "cells",
		Doc:     "is the number of groups of instances that are matched on their own",
		Readers: by(Router, "1", "matching"),
		field:   whole(1, 10000, func(o *Options) *int { return &o.Routing.Cells }),
	},
	{
		Name:    "threshold",
		Doc:     "is the number of items beyond which a query goes to the base device type",
		Readers: by(Router, "0", "threshold"),
		field:   whole(0, 1e9, func(o *Options) *int { return &o.Routing.Threshold }),
	},
	{
		Name:    "idle",
		Doc:     "keeps an instance from taking a query while another waits there for its slot",
		Readers: by(Router, "false", "fcfs"),
		field:   either("false", "true", func(o *Options) *bool { return &o.Routing.Idle }),
	},
	{
		Name:    "free",
		Doc:     "lets the time of machines cost nothing, to see what its price is worth",
		Readers: by(Router, "false", "priced"),
		field:   either("false", "true", func(o *Options) *bool { return &o.Routing.Free }),
	},
	{
		Name:    "eager",
		Doc:     "lets every batch begin at once, to see what waiting is worth",
		Readers: by(Router, "false", "priced"),
		field:   either("false", "true", func(o *Options) *bool { return &o.Routing.Eager }),
	},
	{
		Name:    "final",
		Doc:     "lets every answer be the last, however unsure its variant is of it",
		Readers: by(Router, "false", "priced"),
		field:   either("false", "true", func(o *Options) *bool { return &o.Routing.Final }),
	},
}
