package systems

import (
	"fmt"
	"time"

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
	s.Alpha, s.Pause, s.Linger = o.Keeping.Alpha, o.Replan, o.Keeping.Linger
	return s
}

// Settings are the options that the parts of an engine need to decide the same again, by their names in configurations;
// those that a journal gives a field of its own are left out.
func (o Options) Settings() map[string]string {
	out := make(map[string]string)
	number := func(name string, x float64) {
		if x > 0 {
			out[name] = fmt.Sprint(x)
		}
	}
	span := func(name string, d time.Duration) {
		if d > 0 {
			out[name] = d.String()
		}
	}
	k := &o.Keeping
	if k.Rule != "" {
		out["keep"] = k.Rule
	}
	number("gamma", k.Gamma)
	number("head", k.Head)
	number("tail", k.Tail)
	number("alpha", k.Alpha)
	span("alive", k.Alive)
	span("linger", k.Linger)
	span("tracked", k.Tracked)
	span("cold_price", k.Price)
	number("change", o.Following.Change)
	span("turnoff", o.Following.TurnOff)
	number("cells", float64(o.Routing.Cells))
	number("threshold", float64(o.Routing.Threshold))
	if o.Routing.Idle {
		out["idle"] = "true"
	}
	if o.Planning.Oddities {
		out["release"] = "true"
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
