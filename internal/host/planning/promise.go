package planning

import (
	"context"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Promise is what is to be promised of a demand, as means over its queries.
type Promise struct {
	Accuracy  float64 `json:"accuracy"`        // at least
	Violation float64 `json:"violation_ratio"` // share of late queries, at most
}

// Promising is the fewest workers of a device type, and none of others, with which a plan promises enough.
type Promising struct {
	DeviceType string `json:"device_type"`
	// Workers is 0 where no number of them is enough; Most is then the largest that was tried, and Promised what it
	// promises, nil where there is no plan.
	Workers     int      `json:"workers"`
	Most        int      `json:"most"`
	CostPerHour float64  `json:"cost_per_hour"` // $/h
	Promised    *Promise `json:"promised,omitempty"`
}

// mostPromising is how many workers of a type are tried at most.
const mostPromising = 512

// Promises searches for every device type the fewest workers with which a system promises enough of a demand (RAMSIS
// §5.1: the promises of policies direct a resource manager). It takes for granted that more workers promise no less.
// Types on which nothing was measured are left out. An error is of kind fault.Usage when the system's planner promises
// nothing, and of kind fault.Short when no variants are as accurate.
func Promises(ctx context.Context, p *host.Profiled, s systems.System, d *Demand, want Promise) ([]Promising, error) {
	if best := d.bestAccuracy(p.Spec()); best < want.Accuracy {
		return nil, fault.Errorf(fault.Short, "an accuracy of %v cannot be promised: with the most accurate "+
			"variants it is %.4g", want.Accuracy, best)
	}
	s.Options.Policies.Known = true // no policies but those of the demand
	var out []Promising
	for t := range p.Spec().DeviceTypes {
		x := promising{p: p, s: s, d: d, device: serving.DeviceTypeID(t)}
		f, err := x.fleet(1)
		if err != nil {
			return nil, err
		}
		if len(f.Unmeasured()) > 0 {
			continue
		}
		found, err := x.fewest(ctx, want)
		if err != nil {
			return nil, err
		}
		out = append(out, *found)
	}
	return out, nil
}

// bestAccuracy is the mean over a demand when every app is served by the most accurate variant of its first stage.
func (d *Demand) bestAccuracy(spec *serving.Spec) float64 {
	sum := 0.0
	for a := range spec.Apps {
		best := 0.0
		for _, v := range spec.Stages[spec.Apps[a].Stages[0]].Variants {
			best = max(best, spec.Variants[v].Accuracy)
		}
		sum += d.Rates[a] * best
	}
	return sum / max(d.Total(), 1e-9)
}

type promising struct {
	p      *host.Profiled
	s      systems.System
	d      *Demand
	device serving.DeviceTypeID
}

// fleet returns the fleet of n workers of the type and none of others.
func (x *promising) fleet(n int) (Fleet, error) {
	change := make([]int, len(x.p.Spec().DeviceTypes))
	for _, w := range x.p.Spec().Workers {
		change[w.DeviceType]--
	}
	change[x.device] += n
	return Changed(x.p, "", change)
}

// try returns what n workers promise, nil where there is no plan for them.
func (x *promising) try(ctx context.Context, n int) (*Promising, error) {
	f, err := x.fleet(n)
	if err != nil {
		return nil, err
	}
	planner, err := f.profiled.Planner(x.s)
	if err != nil {
		return nil, err
	}
	request := plan.Request{Spec: f.profiled.Spec(), Rates: x.s.AtLeast(x.d.Rates)}
	made, failed := dataplane.MakePlan(ctx, planner, request)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	out := &Promising{DeviceType: x.p.Spec().DeviceTypes[x.device].Name, Workers: n, Most: n}
	if failed != nil {
		return out, nil //nolint:nilerr // no plan for so few is an answer, and more are tried
	}
	if made.Forecast.Violation < 0 {
		return nil, fault.Errorf(fault.Usage, "the plans of system %s promise no share of late queries; ramsis, tidal "+
			"and their kin do", x.s.Name)
	}
	out.CostPerHour = made.Forecast.CostPerHour
	out.Promised = &Promise{made.Forecast.Accuracy, made.Forecast.Violation}
	return out, nil
}

// fewest doubles the workers until they promise enough, and then halves the gap.
func (x *promising) fewest(ctx context.Context, want Promise) (*Promising, error) {
	most := mostPromising
	if limit := x.p.Spec().DeviceTypes[x.device].MaxMachines; limit > 0 {
		most = min(most, limit)
	}
	enough := func(y *Promising) bool {
		return y.Promised != nil && y.Promised.Accuracy >= want.Accuracy && y.Promised.Violation <= want.Violation
	}
	low, high := 0, 1
	best, err := x.try(ctx, high)
	for err == nil && !enough(best) {
		if high == most {
			best.Workers, best.CostPerHour = 0, 0
			return best, nil
		}
		low, high = high, min(2*high, most)
		best, err = x.try(ctx, high)
	}
	for err == nil && high-low > 1 {
		middle := (low + high) / 2
		var y *Promising
		if y, err = x.try(ctx, middle); err == nil && enough(y) {
			best, high = y, middle
		} else {
			low = middle
		}
	}
	return best, err
}

// Cheapest returns the entry that promises enough for the least money, or else with the fewest workers; nil for none.
func Cheapest(of []Promising) *Promising {
	var best *Promising
	for i := range of {
		x := &of[i]
		better := best == nil || x.CostPerHour < best.CostPerHour ||
			x.CostPerHour == best.CostPerHour && x.Workers < best.Workers
		if x.Workers > 0 && better {
			best = x
		}
	}
	return best
}
