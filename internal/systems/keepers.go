package systems

import (
	"cmp"

	inflessrules "github.com/sluice-serving/sluice/papers/infless/rules"
	"github.com/sluice-serving/sluice/policy/scale"
)

// ratebands is the scaler that lets apps go. A keeper keeps them warm: cheapest unless another is chosen. Systems of
// papers name theirs.
const (
	ratebands = "ratebands"
	lsth      = "lsth"
	cheapest  = "cheapest"
)

var keepers = []registered[func(*Keeping) inflessrules.Keeper]{
	{
		cheapest, "keeps an app warm as long as that is expected to cost less than a cold start", "ours",
		func(o *Keeping) inflessrules.Keeper { return inflessrules.NewCheapest(o.Price) },
	},
	{
		lsth, "keeps an app warm when calls are likely by its idle times of the last day and the last hour",
		"INFless §3.5",
		func(o *Keeping) inflessrules.Keeper {
			k := inflessrules.NewLSTH()
			k.Gamma, k.Head, k.Tail = o.Gamma, o.Head, o.Tail
			return k
		},
	},
	{
		"hybridhistogram", "keeps an app warm when calls are likely by its idle times of the last hours",
		"Shahrad et al., ATC 2020, §4.2; INFless §3.5",
		func(o *Keeping) inflessrules.Keeper {
			k := inflessrules.NewHybridHistogram(o.Tracked)
			k.Head, k.Tail = o.Head, o.Tail
			return k
		},
	},
	{
		"keepalive", "keeps an app warm for a fixed time after its last query", "INFless §5.1 (OpenFaaS+)",
		func(o *Keeping) inflessrules.Keeper { return &inflessrules.KeepAlive{For: o.Alive} },
	},
}

// Keepers returns the names of the rules that keep idle apps warm.
func Keepers() []string { return namesOf(keepers) }

// NewKeeper returns a new rule by the options. An unknown name counts as cheapest.
func NewKeeper(o Keeping) inflessrules.Keeper {
	fresh, err := find(Keeper, keepers, cmp.Or(o.Rule, cheapest))
	if err != nil {
		return inflessrules.NewCheapest(o.Price)
	}
	return fresh(&o)
}

func newRateBands(o Options) scale.Scaler {
	s := inflessrules.NewRateBands(func() inflessrules.Keeper { return NewKeeper(o.Keeping) })
	s.Alpha, s.Pause, s.Linger = o.Keeping.Alpha, o.Replan, o.Keeping.Linger
	return s
}
