package simtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Grown returns n growths, the first of c's spec and each other of the one before: apps are added, get new versions and
// are closed. Apps of c stay open.
func (c *Cluster) Grown(rng *rand.Rand, n int) []*engine.Growth {
	var out []*engine.Growth
	spec, m := c.Spec, serving.Measurements{
		Latency: slices.Clone(c.Measurements.Latency), Load: slices.Clone(c.Measurements.Load),
	}
	for len(out) < n {
		var added []serving.AppID
		for a := len(c.Spec.Apps); a < len(spec.Apps); a++ {
			if !spec.Apps[a].Closed {
				added = append(added, serving.AppID(a))
			}
		}
		name := fmt.Sprintf("f%d", len(spec.Apps))
		app := serving.App{Name: name, Weight: 1, QueueLimit: 5 + rng.IntN(200), Late: serving.LatePolicy(rng.IntN(2)),
			MinInstances: rng.IntN(3),
			SLO:          serving.SLO{Latency: time.Duration(50+rng.IntN(400)) * time.Millisecond, Percentile: 99}}
		v := serving.Variant{
			Name: fmt.Sprintf("%s.v%d", name, len(spec.Variants)), Accuracy: rng.Float64(), MaxBatch: 1 + rng.IntN(16),
		}
		id := serving.VariantID(serving.None)
		switch pick := rng.IntN(4); {
		case len(added) == 0 || pick < 2:
			spec, _, id = spec.WithApp(app, v, nil)
		case pick == 2:
			spec, id = spec.WithVersion(added[rng.IntN(len(added))], app, v, nil)
		default:
			spec = spec.WithClosed(added[rng.IntN(len(added))])
		}
		if id != serving.None {
			for d := range spec.DeviceTypes {
				base, per := time.Duration(200+rng.IntN(8000))*time.Microsecond,
					time.Duration(50+rng.IntN(1500))*time.Microsecond
				for b := 1; b <= 16; b *= 2 {
					mean := base + time.Duration(b)*per
					m.Latency = append(m.Latency, Point(id, serving.DeviceTypeID(d), b, 1, mean, mean/20))
				}
				m.Load = append(m.Load, serving.LoadPoint{
					Variant: id, DeviceType: serving.DeviceTypeID(d),
					Load: time.Duration(1+rng.IntN(300)) * time.Millisecond,
				})
			}
		}
		p, err := profile.NewTable(spec, m, profile.P95)
		if err != nil {
			panic(err)
		}
		out = append(out, &engine.Growth{
			Spec: spec, Known: plan.Known{Profile: p, Measurements: serving.Measurements{
				Latency: slices.Clone(m.Latency), Load: slices.Clone(m.Load),
			}},
		})
	}
	return out
}

// Spreading returns a planner like c's that places added apps, too.
func (c *Cluster) Spreading(p profile.Profile, _ *serving.Open) (plan.Planner, error) {
	return &Planner{static.Planner{Profile: p, Instances: c.Planner.Instances, Spread: true}}, nil
}
