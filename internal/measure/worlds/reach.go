package worlds

import (
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/algo/lp"
	"github.com/sluice-serving/sluice/serving"
)

// reach returns the highest rate of all apps together, in queries/s in the proportions of their shares, for which the
// machines have time: with the variants that meet the floors, or with the most accurate alone. 0 means that an app
// cannot be served at all.
func (g *generator) reach(best bool) float64 {
	spec := g.w.Spec
	counts := make([]float64, len(spec.DeviceTypes))
	for _, x := range spec.Workers {
		counts[x.DeviceType]++
	}
	var p lp.Program
	p.Reset(len(counts) + len(spec.Stages))
	for d, n := range counts {
		p.Limit(d, n)
	}
	var rates []lp.Term
	for s := range spec.Stages {
		rates = append(rates, lp.Term{Row: len(counts) + s, Coef: g.share[spec.Stages[s].App] * g.items[s]})
	}
	total := p.Add(1, math.Inf(1), rates...)
	for s := range spec.Stages {
		for _, v := range g.candidates(serving.StageID(s), best) {
			for d := range counts {
				if r := g.rate(v, serving.DeviceTypeID(d)); r > 0 {
					p.Add(0, math.Inf(1), lp.Term{Row: d, Coef: 1}, lp.Term{Row: len(counts) + s, Coef: -r})
				}
			}
		}
	}
	if p.Solve(0) != lp.Optimal {
		return 0
	}
	return p.Value(total)
}

// candidates are the variants of a stage that meet the floor and that some machine runs in time, or the most accurate
// of them.
func (g *generator) candidates(s serving.StageID, best bool) (out []serving.VariantID) {
	spec := g.w.Spec
	for _, v := range spec.Stages[s].Variants {
		fits := slices.ContainsFunc(g.deviceTypes(), func(d serving.DeviceTypeID) bool { return g.rate(v, d) > 0 })
		if !fits || spec.Variants[v].Accuracy < spec.Apps[spec.Stages[s].App].Floor {
			continue
		}
		if best && len(out) > 0 {
			if spec.Variants[v].Accuracy > spec.Variants[out[0]].Accuracy {
				out[0] = v
			}
			continue
		}
		out = append(out, v)
	}
	return out
}

func (g *generator) deviceTypes() []serving.DeviceTypeID {
	out := make([]serving.DeviceTypeID, len(g.kinds))
	for d := range out {
		out[d] = serving.DeviceTypeID(d)
	}
	return out
}

// rate is the most items a second of a variant on a machine, in batches that are within the objective; 0 where it does
// not fit, or a query of the largest size takes more than the stage's equal part of the objective.
func (g *generator) rate(v serving.VariantID, d serving.DeviceTypeID) float64 {
	spec := g.w.Spec
	x := &spec.Variants[v]
	if x.MemoryBytes > spec.DeviceTypes[d].MemoryBytes {
		return 0
	}
	app := &spec.Apps[spec.Stages[x.Stage].App]
	within := app.SLO.Latency.Seconds()
	from := 1
	if app.Stages[0] == x.Stage {
		from = largest(app)
	}
	if g.seconds(int(v), d, from) > within/float64(len(app.Stages)) {
		return 0
	}
	out := 0.0
	for b := from; b <= x.MaxBatch && g.seconds(int(v), d, b) <= within; b++ {
		out = max(out, float64(b)/g.seconds(int(v), d, b))
	}
	return out
}

// feasible tells whether everything can be served, and notes how much.
func (g *generator) feasible() bool {
	g.w.Reach, g.w.Best = g.reach(false), g.reach(true)
	return g.w.Reach > 0 && g.w.Best > 0
}
