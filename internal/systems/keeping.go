package systems

import (
	"time"

	inflessrules "github.com/sluice-serving/sluice/papers/infless/rules"
)

// Keeping tunes how idle apps are kept warm, by scalers that let apps go.
type Keeping struct {
	Rule    string        // a keeper; "" means cheapest
	Gamma   float64       // of lsth: the weight of the long histogram; 0 means the rule's own
	Head    float64       // of the histograms: the share of idle times before pre-warming; 0 means the rule's own
	Tail    float64       // of the histograms: the share of idle times before letting go; 0 means the rule's own
	Alive   time.Duration // of keepalive; 0 means the rule's own
	Tracked time.Duration // of hybridhistogram: the window of its histogram; 0 means the rule's own
	Price   time.Duration // of cheapest: the idle time that a cold start is worth; 0 means the rule's own
	// of ratebands: how long instances stay after the load has fallen; 0 means the rule's own
	Linger time.Duration
	Alpha  float64 // of ratebands: where in the band scaling in begins; 0 means the rule's own
}

var keepingOptions = []Option{
	{
		Name:    "keep",
		Doc:     "is the keeper: the rule by which idle apps are kept warm",
		Readers: by(Scaler, cheapest, ratebands),
		field:   choice(func(o *Options) *string { return &o.Keeping.Rule }, Keepers()...),
	},
	{
		Name:    "gamma",
		Doc:     "is the weight of the last day's idle times; those of the last hour have the rest",
		Readers: by(Keeper, "0.5", lsth),
		field:   number(0.001, 0.999, func(o *Options) *float64 { return &o.Keeping.Gamma }),
	},
	{
		Name:    "head",
		Doc:     "is the share of idle times that end before an app is warmed up again",
		Readers: by(Keeper, "0.05", lsth, "hybridhistogram"),
		field:   number(0.0001, 1, func(o *Options) *float64 { return &o.Keeping.Head }),
	},
	{
		Name:    "tail",
		Doc:     "is the share of idle times that end before an app is let go",
		Readers: by(Keeper, "0.99", lsth, "hybridhistogram"),
		field:   number(0.0001, 1, func(o *Options) *float64 { return &o.Keeping.Tail }),
	},
	{
		Name:    "tracked",
		Doc:     "is how far the rule looks back",
		Readers: by(Keeper, "4h", "hybridhistogram"),
		field:   span(time.Millisecond, 4*week, func(o *Options) *time.Duration { return &o.Keeping.Tracked }),
	},
	{
		Name:    "alive",
		Doc:     "is how long an app stays warm after its last query",
		Readers: by(Keeper, short(inflessrules.Alive), "keepalive"),
		field:   span(time.Millisecond, week, func(o *Options) *time.Duration { return &o.Keeping.Alive }),
	},
	{
		Name:    "cold_price",
		Doc:     "is the idle time that a cold start is worth",
		Readers: by(Keeper, short(inflessrules.ColdPrice), cheapest),
		field:   span(time.Millisecond, week, func(o *Options) *time.Duration { return &o.Keeping.Price }),
	},
	{
		Name:    "linger",
		Doc:     "is how long instances stay that a fallen load does not need",
		Readers: by(Scaler, "10s", ratebands),
		field:   span(time.Millisecond, week, func(o *Options) *time.Duration { return &o.Keeping.Linger }),
	},
	{
		Name:    "alpha",
		Doc:     "says where in the band of rates scaling in begins, from 0 at its lower edge to 1 at its upper edge",
		Readers: by(Scaler, "0.8", ratebands),
		field:   number(0.001, 1, func(o *Options) *float64 { return &o.Keeping.Alpha }),
	},
}
