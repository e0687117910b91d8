package experiment

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim"
	"github.com/sluice-serving/sluice/sim/truth"
)

const (
	// triedQueries is how many queries a plan is tried on, on average, if apps have one stage. Fewer say too little of
	// one query in a hundred.
	triedQueries = 4000
	// longestTrial bounds the simulated time where hardly anything arrives.
	longestTrial = 10 * time.Minute
	// trialBlocks is into how many parts a trial is cut for the standard error.
	trialBlocks = 10
	// trialSeed is the same for all: plans that are compared share their arrivals.
	trialSeed = 1
)

// Try implements plan.Try: the system's rules serve with the plan what is drawn from the request's rates, dispersions
// and sizes. Machines are as fast as the request believes, with the scatter that was measured.
func (t Trials) Try(ctx context.Context, r *plan.Request, p *plan.Plan) (plan.Tried, error) {
	out := plan.Tried{Late: make([]float64, len(r.Spec.Apps)), Accurate: make([]float64, len(r.Spec.Apps))}
	source, span, err := t.arrivals(r)
	if err != nil || source == nil || r.Beliefs == nil {
		return out, err
	}
	times := asBelieved(r, p, t.known(r.Known))
	machines, err := truth.NewTable(r.Spec, times, truth.Lognormal, workload.Rand(trialSeed, "service"))
	if err != nil {
		return out, err
	}
	s := t.System
	s.Planner, s.Scaler, s.Options.Learn = "static", "fixed", false
	e, err := s.Engine(r.Spec, r.Beliefs, ^plan.Sections(0))
	if err != nil {
		return out, err
	}
	counted := newTally(r.Spec, span)
	if _, err := sim.Run(sim.Config{
		Spec: r.Spec, Engine: e, Truth: machines, Source: source, Initial: p, Warm: true, Observe: counted.observe,
		// What can never be served would keep the run going.
		Limit: serving.Time(span + longestTrial),
	}); err != nil && e.Pending() == 0 {
		return out, fmt.Errorf("a plan is tried: %w", err)
	}
	counted.fill(&out)
	return out, ctx.Err()
}

// arrivals draws queries like those of a request, and returns the time in which they arrive; nil where none do.
func (t Trials) arrivals(r *plan.Request) (workload.Source, time.Duration, error) {
	total := 0.0
	for a, rate := range r.Rates {
		if !r.Spec.Apps[a].Closed {
			total += rate
		}
	}
	if total <= 0 {
		return nil, 0, nil
	}
	stages := float64(len(r.Spec.Stages)) / float64(max(len(r.Spec.Apps), 1))
	span := min(time.Duration(triedQueries/(total*max(stages, 1))*float64(time.Second)), longestTrial)
	var all []workload.Source
	for a, rate := range r.Rates {
		if rate <= 0 || r.Spec.Apps[a].Closed {
			continue
		}
		app := serving.AppID(a)
		var gaps workload.Gaps = workload.Poisson{}
		// The counts of a renewal process have in the long run the dispersion that gaps have: 1/shape.
		d := unknownDispersion
		if a < len(r.Dispersions) {
			d = max(r.Dispersions[a], leastDispersion)
		}
		if d > leastClumps || d < mostEven {
			var err error
			if gaps, err = workload.NewGamma(max(1/d, leastShape)); err != nil {
				return nil, 0, err
			}
		}
		sizes, err := workload.FromMix(*r.Mix(app))
		if err != nil {
			return nil, 0, err
		}
		constant, err := workload.Constant(rate)
		if err != nil {
			return nil, 0, fmt.Errorf("a plan for app %q is tried: %w", r.Spec.Apps[a].Name, err)
		}
		name := fmt.Sprint("app ", a)
		all = append(all, &workload.App{
			Times: workload.NewProcess(constant, gaps, workload.Rand(trialSeed, name+" arrivals")),
			Sizes: sizes, SizeRand: workload.Rand(trialSeed, name+" items"),
			Template: workload.Arrival{App: app, Variant: serving.None, Sample: -1},
		})
	}
	return workload.Limit(workload.Merge(all...), serving.Time(span), -1), span, nil
}

const (
	// unknownDispersion is how unevenly queries arrive where nothing was seen yet: machines are given back more easily
	// than late queries are made good.
	unknownDispersion = 2.0
	// leastClumps is the dispersion up to which arrivals count as coming by chance, mostEven that below which they
	// count as even: frames of cameras are.
	leastClumps, mostEven = 1.2, 0.6
	// leastDispersion bounds how evenly the arrivals of a trial come.
	leastDispersion = 0.05
	// leastShape bounds how unevenly the arrivals of a trial come.
	leastShape = 0.02
)

// asBelieved returns run times for the variants of a plan: as they were measured, times the change of the belief since
// then; as they are believed where nothing was measured.
func asBelieved(r *plan.Request, p *plan.Plan, known *plan.Known) (out serving.Measurements) {
	type pair struct {
		v serving.VariantID
		d serving.DeviceTypeID
	}
	slots := make(map[pair]int)
	var order []pair
	for n := range p.Instances {
		i := &p.Instances[n]
		for _, v := range i.Variants {
			x := pair{v.Variant, i.DeviceType(r.Spec)}
			if slots[x] == 0 {
				order = append(order, x)
			}
			slots[x] = max(slots[x], i.Slots)
		}
	}
	measured := make(map[pair]bool)
	if known.Profile != nil {
		for _, m := range known.Measurements.Latency {
			x := pair{m.Variant, m.DeviceType}
			if slots[x] == 0 {
				continue
			}
			was := known.Profile.Latency(m.Variant, m.DeviceType, m.Items, m.Concurrency)
			now := r.Beliefs.Latency(m.Variant, m.DeviceType, m.Items, m.Concurrency)
			if was <= 0 || was >= profile.Unknown || now >= profile.Unknown {
				continue
			}
			scale := float64(now) / float64(was)
			m.Mean = max(time.Duration(scale*float64(m.Mean)), 1)
			m.StdDev = time.Duration(scale * float64(m.StdDev))
			out.Latency = append(out.Latency, m)
			measured[x] = true
		}
	}
	for _, x := range order {
		most := r.Spec.Variants[x.v].MaxBatch
		for n := 1; n <= slots[x] && !measured[x]; n++ {
			for b := 1; ; b = min(2*b, most) {
				if l := r.Beliefs.Latency(x.v, x.d, b, n); l < profile.Unknown {
					out.Latency = append(out.Latency, serving.LatencyPoint{
						Variant: x.v, DeviceType: x.d, Items: b, Concurrency: n, Mean: max(l, 1),
					})
				}
				if b == most {
					break
				}
			}
		}
	}
	return out
}

// tally counts how the queries of a trial end.
type tally struct {
	spec          *serving.Spec
	block         time.Duration
	offered, late [trialBlocks]float64
	apps          []appTally
	accuracy      float64 // sum over answers in time
	inTime        float64
	utility       float64
	worth         float64
	best          []float64
}

// appTally counts the queries of an app.
type appTally struct {
	offered, late, inTime float64
	accuracy              float64 // sum over answers in time
}

func newTally(spec *serving.Spec, span time.Duration) *tally {
	c := &tally{spec: spec, block: span/trialBlocks + 1, best: make([]float64, len(spec.Apps))}
	c.apps = make([]appTally, len(spec.Apps))
	for a := range c.best {
		c.best[a] = spec.BestAccuracy(serving.AppID(a))
	}
	return c
}

// observe counts the queries that arrive and end in a step. A query that nothing ever ends counts as late.
func (c *tally) observe(now serving.Time, in []engine.Input, out []engine.Decision) {
	for k := range in {
		if in[k].Kind == engine.QueryArrived {
			a := in[k].Query.App
			at := c.blockOf(in[k].Query.Arrived)
			c.offered[at]++
			c.late[at]++
			c.apps[a].offered++
			c.apps[a].late++
			c.worth += c.spec.Apps[a].Weight
		}
	}
	for k := range out {
		if out[k].Kind != engine.EndQuery {
			continue
		}
		o := out[k].Ended(now)
		if o.Outcome != serving.Served || o.Done > o.Deadline {
			continue
		}
		c.late[c.blockOf(o.Arrived)]--
		c.apps[o.App].late--
		c.apps[o.App].inTime++
		c.apps[o.App].accuracy += o.Accuracy
		c.inTime++
		c.accuracy += o.Accuracy
		if best := o.Best(c.best[o.App]); best > 0 {
			c.utility += c.spec.Apps[o.App].Weight * o.Accuracy / best
		}
	}
}

// blockOf returns the part of the trial in which a query arrives.
func (c *tally) blockOf(arrived serving.Time) int {
	return min(int(time.Duration(arrived)/c.block), trialBlocks-1)
}

// fill turns the counts into shares.
func (c *tally) fill(out *plan.Tried) {
	var offered, late, squares, blocks float64
	for k := range c.offered {
		offered += c.offered[k]
		late += c.late[k]
	}
	if offered == 0 {
		return
	}
	out.Queries = int(offered)
	out.Violation = late / offered
	for k := range c.offered {
		if c.offered[k] > 0 {
			d := c.late[k]/c.offered[k] - out.Violation
			squares += d * d
			blocks++
		}
	}
	if blocks > 1 {
		out.Deviation = math.Sqrt(squares / (blocks - 1) / blocks)
	}
	if c.inTime > 0 {
		out.Accuracy = c.accuracy / c.inTime
	}
	if c.worth > 0 {
		out.Utility = c.utility / c.worth
	}
	for a := range c.apps {
		if c.apps[a].offered > 0 {
			out.Late[a] = c.apps[a].late / c.apps[a].offered
		}
		if c.apps[a].inTime > 0 {
			out.Accurate[a] = c.apps[a].accuracy / c.apps[a].inTime
		}
	}
}
