package worlds

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// seconds is how long a batch takes on a kind of machine: a part that every batch has, and a part for each item.
func (g *generator) seconds(v int, d serving.DeviceTypeID, items int) float64 {
	k := g.kinds[d]
	return g.models[v].item * k.factor * (k.fixed + (1-k.fixed)*float64(items))
}

// measure makes the measured latencies and the objectives. It tells whether it could.
func (g *generator) measure() bool {
	for a := range g.w.Spec.Apps {
		if !g.objective(&g.w.Spec.Apps[a]) {
			return false
		}
	}
	g.points()
	return true
}

// objective sets the objective of an app: so many times as long as its largest query takes alone, from stage to stage,
// with variants somewhere on the ladder on the fastest machines.
func (g *generator) objective(app *serving.App) bool {
	spec := g.w.Spec
	least, path := 0.0, 0.0
	rung := g.rng.Float64()
	for at, s := range app.Stages {
		items := 1
		if at == 0 {
			items = largest(app)
		}
		low, high := math.Inf(1), 0.0
		for _, v := range spec.Stages[s].Variants {
			if spec.Variants[v].Accuracy < app.Floor || items > spec.Variants[v].MaxBatch {
				continue
			}
			fastest := math.Inf(1)
			for d := range g.kinds {
				fastest = min(fastest, g.seconds(int(v), serving.DeviceTypeID(d), items))
			}
			low, high = min(low, fastest), max(high, fastest)
		}
		if high == 0 {
			return false
		}
		least += low
		path += low * math.Pow(high/low, rung)
	}
	slo := max(path*g.between(1.5, 4), least*leastSlack)
	app.SLO.Latency = max(time.Duration(slo*1e3+1), 10) * time.Millisecond
	return true
}

// leastSlack is how many times as long as its fastest run an objective is at least, so that a queue fits into it.
const leastSlack = 3

// largest is the most items that a query of an app brings.
func largest(app *serving.App) int {
	out := 1
	for _, n := range app.Mix.Sizes {
		out = max(out, int(n))
	}
	return out
}

// points makes the measured points.
func (g *generator) points() {
	m := &g.w.Measurements
	m.Latency, m.Load = nil, nil
	spread := 0.0
	if g.w.Has(Scatter) {
		spread = g.between(0.05, 0.33)
	}
	for v := range g.w.Spec.Variants {
		for d := range g.kinds {
			for b := 1; ; b = min(2*b, g.w.Spec.Variants[v].MaxBatch) {
				mean := rounded(g.seconds(v, serving.DeviceTypeID(d), b))
				m.Latency = append(m.Latency, point(serving.VariantID(v), serving.DeviceTypeID(d), b, mean, spread))
				if b == g.w.Spec.Variants[v].MaxBatch {
					break
				}
			}
			m.Load = append(m.Load, serving.LoadPoint{
				Variant: serving.VariantID(v), DeviceType: serving.DeviceTypeID(d),
				Load: rounded(0.2 + float64(g.w.Spec.Variants[v].MemoryBytes)/(400*mebi)),
			})
		}
	}
}

// point is a measurement of a log-normal run time with a deviation relative to its mean.
func point(v serving.VariantID, d serving.DeviceTypeID, items int, mean time.Duration,
	spread float64) serving.LatencyPoint {
	s2 := math.Log1p(spread * spread)
	at := func(z float64) time.Duration { return rounded(mean.Seconds() * math.Exp(z*math.Sqrt(s2)-s2/2)) }
	out := serving.LatencyPoint{
		Variant: v, DeviceType: d, Items: items, Concurrency: 1, Samples: 100, Mean: mean, P50: mean, P90: mean,
		P95: mean, P99: mean,
	}
	if spread > 0 {
		out.StdDev = rounded(mean.Seconds() * spread)
		out.P50, out.P90, out.P95, out.P99 = at(0), at(1.2816), at(1.6449), at(2.3263)
	}
	return out
}
