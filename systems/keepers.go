package systems

import (
	"github.com/sluice-serving/sluice/policy/scale"
)

// keepers are the rules that say how long an app that nobody calls stays warm.
var keepers = []string{"lsth", "hybridhistogram", "keepalive", "cheapest"}

// Keepers returns their names.
func Keepers() []string { return append([]string(nil), keepers...) }

// NewKeeper returns a fresh rule as the options have it; an unknown name is lsth.
func NewKeeper(o Keeping) scale.Keeper {
	switch o.Rule {
	case "keepalive":
		return &scale.KeepAlive{For: o.Alive}
	case "hybridhistogram":
		k := scale.NewHybridHistogram(o.Tracked)
		k.Head, k.Tail = o.Head, o.Tail
		return k
	case "cheapest":
		return scale.NewCheapest(o.Price)
	}
	k := scale.NewLSTH()
	k.Gamma, k.Head, k.Tail = o.Gamma, o.Head, o.Tail
	return k
}

func newRateBands(o Options) scale.Scaler {
	s := scale.NewRateBands(func() scale.Keeper { return NewKeeper(o.Keeping) })
	s.Alpha, s.Pause = o.Keeping.Alpha, o.Replan
	return s
}
