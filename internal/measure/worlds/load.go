package worlds

import (
	"math"
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

const (
	// span is how long queries arrive, in seconds, and largeSpan that of large worlds.
	span, largeSpan = 30.0, 10.0
	// leastQueries and mostQueries bound the queries of a world. Where the machines carry more, everything takes
	// longer; where they carry less, everything is faster.
	leastQueries, mostQueries = 2000, 7000
	// mostLargeQueries bounds those of a large one, whose machines are to have some tens of batches each all the same.
	mostLargeQueries = 20_000
	// leastObjective keeps objectives well above the rounding of files, in seconds.
	leastObjective = 0.010
)

// load draws how much is offered and how it arrives.
func (g *generator) load() {
	rate, most := g.offered(), float64(mostQueries)
	g.span = span
	if g.w.Has(Large) {
		g.span, most = largeSpan, mostLargeQueries
	}
	var levels []float64
	if g.w.Has(Ramp) {
		levels = g.ramp()
		if !g.w.Has(Overload) {
			rate *= peak / slices.Max(levels)
		}
	}
	if slower := max(rate*g.span/most, 1); slower > 1 {
		rate = g.stretch(slower, rate)
	} else if faster := max(rate*g.span/leastQueries, leastObjective/g.shortest()); faster < 1 {
		rate = g.stretch(faster, rate)
	}
	w := g.w
	w.Workload = workload.Spec{Seed: w.Seed*1_000_003 + uint64(w.Number), DurationS: g.span}
	w.Demand = make([]float64, len(w.Spec.Apps))
	for a := range w.Demand {
		w.Demand[a] = max(to(rate*g.share[a], 100), 0.01)
	}
	var traces []series
	if w.Has(RealTrace) {
		traces = g.traces()
	}
	phase := g.rng.Float64()
	for a := range w.Demand {
		x := workload.AppSpec{App: w.Spec.Apps[a].Name, Items: w.Items[a]}
		switch {
		case w.Has(RealTrace):
			g.follow(&x, &traces[a%len(traces)], w.Demand[a])
		default:
			g.gaps(&x)
			x.Rate = w.Demand[a]
			switch {
			case w.Has(Moving):
				x.Rate, x.Rates = 0, g.moving(w.Demand[a], phase+float64(a)/float64(len(w.Demand)))
			case w.Has(Ramp):
				x.Rate, x.Rates = 0, g.follows(levels, w.Demand[a])
			}
		}
		w.Workload.Apps = append(w.Workload.Apps, x)
	}
}

// offered draws the rate of all apps together, in queries/s.
func (g *generator) offered() float64 {
	w := g.w
	best := min(w.Best, w.Reach)
	switch {
	case w.Has(Overload):
		return w.Reach * g.between(1.2, 2.2)
	case w.Has(LowLoad), w.Has(Rent):
		return best * g.between(0.1, 0.35)
	}
	low, high := 0.7*best, 0.75*w.Reach // batches as large as the objective allows leave no time to wait
	if high <= low {
		return high
	}
	return low * math.Pow(high/low, g.rng.Float64())
}

// stretch has everything take longer by a factor, run times and objectives. It returns the rate that is as much of what
// the machines then carry as the given one was of what they carried.
func (g *generator) stretch(factor, rate float64) float64 {
	for v := range g.models {
		g.models[v].item *= factor
	}
	for a := range g.w.Spec.Apps {
		l := &g.w.Spec.Apps[a].SLO.Latency
		*l = rounded(math.Ceil(l.Seconds()*factor*1e4) / 1e4)
	}
	g.points()
	was := g.w.Reach
	g.feasible()
	return rate * g.w.Reach / was
}

// shortest is the shortest objective of any app, in seconds.
func (g *generator) shortest() float64 {
	out := math.Inf(1)
	for a := range g.w.Spec.Apps {
		out = min(out, g.w.Spec.Apps[a].SLO.Latency.Seconds())
	}
	return out
}

// gaps draws how arrivals follow each other.
func (g *generator) gaps(x *workload.AppSpec) {
	switch {
	case g.w.Has(Clumps):
		x.Process, x.Shape = "gamma", to(math.Exp(g.between(math.Log(0.05), math.Log(0.3))), 1000)
	case g.rng.IntN(3) == 0:
		x.Process, x.Shape = "gamma", to(g.between(0.3, 1), 1000)
	}
}

// steps is into how many steps demand that moves is cut.
const steps = 10

// moving is a rate that rises and falls around a mean, from almost nothing to almost twice as much; phase, in turns,
// differs from app to app, so that the sum moves little.
func (g *generator) moving(mean, phase float64) (out []workload.Segment) {
	for k := range steps {
		at := g.span * float64(k) / steps
		rate := mean * (1 + 0.95*math.Sin(2*math.Pi*(phase+(float64(k)+0.5)/steps)))
		out = append(out, workload.Segment{AtS: at, Rate: max(to(rate, 100), 0.01)})
	}
	return out
}

const (
	// peak is the highest demand of a ramp, relative to what a world without has throughout.
	peak = 1.25
	// lowest is the lowest level of a ramp, relative to its highest, and rampSteps into how many steps it is cut, of
	// which a change takes one at half.
	lowest, rampSteps = 0.25, 60
)

// ramp draws levels of demand, one for each step, with a mean of 1. One of them is the peak.
func (g *generator) ramp() []float64 {
	n := g.whole(4, 6)
	high := g.rng.IntN(n)
	out := make([]float64, rampSteps)
	was := 0.0
	for l := range n {
		level := math.Pow(lowest, g.rng.Float64())
		if l == high {
			level = 1
		}
		from, to := l*rampSteps/n, (l+1)*rampSteps/n
		for k := from; k < to; k++ {
			out[k] = level
		}
		if l > 0 {
			out[from] = (was + level) / 2
		}
		was = level
	}
	sum := 0.0
	for _, x := range out {
		sum += x
	}
	for k := range out {
		out[k] *= rampSteps / sum
	}
	return out
}

// follows is a rate that follows levels around a mean.
func (g *generator) follows(levels []float64, mean float64) (out []workload.Segment) {
	for k, level := range levels {
		at := to(g.span*float64(k)/float64(len(levels)), 1000)
		out = append(out, workload.Segment{AtS: at, Rate: max(to(mean*level, 100), 0.01)})
	}
	return out
}

// follow makes the load of an app follow a series at a mean rate, from a random place in it on.
func (g *generator) follow(x *workload.AppSpec, s *series, mean float64) {
	if s.gaps {
		x.Process, x.Trace = "trace", g.scaledTimes(s, mean)
		x.TraceFile = "arrivals-" + x.App + ".txt"
		return
	}
	n := min(len(s.numbers), mostSteps)
	from := g.rng.IntN(len(s.numbers) - n + 1)
	part := s.numbers[from : from+n]
	sum := 0.0
	for _, c := range part {
		sum += c
	}
	if sum == 0 {
		x.Rate = mean
		return
	}
	for k, c := range part {
		x.Rates = append(x.Rates, workload.Segment{
			AtS: to(g.span*float64(k)/float64(n), 1000), Rate: to(mean*c*float64(n)/sum, 100),
		})
	}
}

// mostSteps is how many steps of a trace a load follows: half a second each.
const mostSteps = 60

// scaledTimes returns arrival times with the gaps of a series, all by the same factor, at a mean rate. Queries come in
// whole microseconds, which trace files keep.
func (g *generator) scaledTimes(s *series, mean float64) (out []serving.Time) {
	n := max(int(mean*g.span), 1)
	from := g.rng.IntN(len(s.numbers))
	sum := 0.0
	for k := range n {
		sum += s.numbers[(from+k)%len(s.numbers)]
	}
	at := 0.0
	for k := range n {
		at += s.numbers[(from+k)%len(s.numbers)] / max(sum, 1) * g.span
		if at >= g.span {
			break
		}
		out = append(out, serving.Time(math.Round(at*1e6))*1000)
	}
	if len(out) == 0 {
		out = append(out, 0)
	}
	return out
}
