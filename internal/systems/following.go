package systems

import "time"

// Following tunes how plans follow content.
type Following struct {
	Change  float64       // fraction by which a factor has to change; 0 means monitor.LeastChange
	TurnOff time.Duration // how long an instance stays loaded that a plan has dropped; 0 stops it at once
}

var followingOptions = []Option{
	{
		Name:    "change",
		Doc:     "is the fraction by which the work that content makes of a graph has to change for a new plan",
		Readers: by(Scaler, "0.25", "complexity"),
		field:   number(0.01, 10, func(o *Options) *float64 { return &o.Following.Change }),
	},
	{
		Name: "turnoff",
		Doc: "is how long an instance that a plan has dropped stays loaded, its worker paid for, so that a later " +
			"plan can resume it without a load",
		Readers: by(Engine, "0s", "engine"),
		field:   span(0, 24*time.Hour, func(o *Options) *time.Duration { return &o.Following.TurnOff }),
	},
}
