package systems

import (
	"cmp"
	"time"

	inflessrules "github.com/sluice-serving/sluice/papers/infless/rules"
	"github.com/sluice-serving/sluice/policy/scale"
)

// ratebands is the scaler that lets apps go. A keep-alive rule keeps them warm: cheapest unless another is chosen.
// Systems of papers name theirs.
const (
	ratebands = "ratebands"
	lsth      = "lsth"
	cheapest  = "cheapest"
)

var keepAlives = []registered[func(*KeepAliveOptions) inflessrules.KeepAlive]{
	{
		cheapest, "keeps an app warm as long as that is expected to cost less than a cold start", "ours",
		func(o *KeepAliveOptions) inflessrules.KeepAlive { return inflessrules.NewCheapest(o.Price) },
	},
	{
		lsth, "keeps an app warm when calls are likely by its idle times of the last day and the last hour",
		"INFless §3.5",
		func(o *KeepAliveOptions) inflessrules.KeepAlive {
			k := inflessrules.NewLSTH()
			k.Gamma, k.Head, k.Tail = o.Gamma, o.Head, o.Tail
			return k
		},
	},
	{
		"hybridhistogram", "keeps an app warm when calls are likely by its idle times of the last hours",
		"Shahrad et al., ATC 2020, §4.2; INFless §3.5",
		func(o *KeepAliveOptions) inflessrules.KeepAlive {
			k := inflessrules.NewHybridHistogram(o.Tracked)
			k.Head, k.Tail = o.Head, o.Tail
			return k
		},
	},
	{
		"keepalive", "keeps an app warm for a fixed time after its last query", "INFless §5.1 (OpenFaaS+)",
		func(o *KeepAliveOptions) inflessrules.KeepAlive { return &inflessrules.FixedKeepAlive{For: o.Alive} },
	},
}

// KeepAlives returns the names of the rules that keep idle apps warm.
func KeepAlives() []string { return namesOf(keepAlives) }

// NewKeepAlive returns a new rule by the options. An unknown name counts as cheapest.
func NewKeepAlive(o KeepAliveOptions) inflessrules.KeepAlive {
	fresh, err := find(KeepAlive, keepAlives, cmp.Or(o.Rule, cheapest))
	if err != nil {
		return inflessrules.NewCheapest(o.Price)
	}
	return fresh(&o)
}

func newRateBands(o Options) scale.Scaler {
	s := inflessrules.NewRateBands(func() inflessrules.KeepAlive { return NewKeepAlive(o.KeepAlive) })
	s.Alpha, s.Pause, s.Linger = o.KeepAlive.Alpha, o.Replan, o.KeepAlive.Linger
	s.OneToOne = o.KeepAlive.Mapping == oneToOne
	return s
}

// KeepAliveOptions tune how idle apps are kept warm, by scalers that let apps go.
type KeepAliveOptions struct {
	Rule    string        // a keep-alive rule; "" means cheapest
	Gamma   float64       // of lsth: the weight of the long histogram; 0 means the rule's own
	Head    float64       // of the histograms: the share of idle times before pre-warming; 0 means the rule's own
	Tail    float64       // of the histograms: the share of idle times before letting go; 0 means the rule's own
	Alive   time.Duration // of keepalive; 0 means the rule's own
	Tracked time.Duration // of hybridhistogram: the window of its histogram; 0 means the rule's own
	Price   time.Duration // of cheapest: the idle time that a cold start is worth; 0 means the rule's own
	// of ratebands: how long instances stay after the load has fallen; 0 means the rule's own
	Linger time.Duration
	Alpha  float64 // of ratebands: where in the band scaling in begins; 0 means the rule's own
	// of ratebands: by-rate (default) or one-to-one: what instances are counted by
	Mapping string
}

// oneToOne is the mapping with an instance for each query.
const oneToOne = "one-to-one"

var keepAliveOptions = []Option{
	{
		Name:    "keep",
		Doc:     "is the rule by which idle apps are kept warm",
		Readers: by(Scaler, cheapest, ratebands),
		field:   choice(func(o *Options) *string { return &o.KeepAlive.Rule }, KeepAlives()...),
	},
	{
		Name:    "gamma",
		Doc:     "is the weight of the last day's idle times; those of the last hour have the rest",
		Readers: by(KeepAlive, "0.5", lsth),
		field:   number(0.001, 0.999, func(o *Options) *float64 { return &o.KeepAlive.Gamma }),
	},
	{
		Name:    "head",
		Doc:     "is the share of idle times that end before an app is warmed up again",
		Readers: by(KeepAlive, "0.05", lsth, "hybridhistogram"),
		field:   number(0.0001, 1, func(o *Options) *float64 { return &o.KeepAlive.Head }),
	},
	{
		Name:    "tail",
		Doc:     "is the share of idle times that end before an app is let go",
		Readers: by(KeepAlive, "0.99", lsth, "hybridhistogram"),
		field:   number(0.0001, 1, func(o *Options) *float64 { return &o.KeepAlive.Tail }),
	},
	{
		Name:    "tracked",
		Doc:     "is how far the rule looks back",
		Readers: by(KeepAlive, "4h", "hybridhistogram"),
		field:   span(time.Millisecond, 4*week, func(o *Options) *time.Duration { return &o.KeepAlive.Tracked }),
	},
	{
		Name:    "alive",
		Doc:     "is how long an app stays warm after its last query",
		Readers: by(KeepAlive, short(inflessrules.Alive), "keepalive"),
		field:   span(time.Millisecond, week, func(o *Options) *time.Duration { return &o.KeepAlive.Alive }),
	},
	{
		Name:    "cold_price",
		Doc:     "is the idle time that a cold start is worth",
		Readers: by(KeepAlive, short(inflessrules.ColdPrice), cheapest),
		field:   span(time.Millisecond, week, func(o *Options) *time.Duration { return &o.KeepAlive.Price }),
	},
	{
		Name:    "linger",
		Doc:     "is how long instances stay that a fallen load does not need",
		Readers: by(Scaler, "10s", ratebands),
		field:   span(time.Millisecond, week, func(o *Options) *time.Duration { return &o.KeepAlive.Linger }),
	},
	{
		Name:    "alpha",
		Doc:     "says where in the band of rates scaling in begins, from 0 at its lower edge to 1 at its upper edge",
		Readers: by(Scaler, "0.8", ratebands),
		field:   number(0.001, 1, func(o *Options) *float64 { return &o.KeepAlive.Alpha }),
	},
	{
		Name:    "mapping",
		Doc:     "says what instances are counted by: the rate, or queries at once, each of which gets one of its own",
		Readers: by(Scaler, "by-rate", ratebands),
		field:   choice(func(o *Options) *string { return &o.KeepAlive.Mapping }, "by-rate", oneToOne),
	},
}
