package rules

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/serving/profile"
)

// gear is how a stage is served for a while: every query by first, and those in the lowest bins of its confidence by
// second, too.
type gear struct {
	first, second serving.VariantID // second is serving.None without
	bins          int
	accuracy      float64
	again         float64 // share of the queries that second answers, too
	// light is how many instances, the first ones, serve first alone, where the others serve second alone; 0 for none.
	light int
}

// gears lists those of a stage: every variant alone and every pair by every threshold.
func gears(spec *serving.Spec, s serving.StageID) (out []gear) {
	stage := &spec.Stages[s]
	for _, v := range stage.Variants {
		if spec.Variants[v].Retired || spec.BelowFloor(v) {
			continue
		}
		out = append(out, gear{first: v, second: serving.None, accuracy: spec.Variants[v].Accuracy})
		c := stage.Confidence(v)
		if c == nil {
			continue
		}
		for _, w := range stage.Variants {
			if spec.Variants[w].Accuracy <= spec.Variants[v].Accuracy || spec.BelowFloor(w) {
				continue
			}
			g := gear{first: v, second: w, accuracy: spec.Variants[v].Accuracy}
			for b := range c.Bins {
				g.bins, g.again = b+1, g.again+c.Bins[b].Share
				g.accuracy += c.Bins[b].Share * (c.Bins[b].Of(w) - c.Bins[b].Accuracy)
				out = append(out, g)
			}
		}
	}
	return out
}

const (
	// period is how often the gear is chosen, rateWindow over how long arrivals are counted.
	period, rateWindow = time.Second, time.Second
	// fullest is the part of the machines' time that a gear may need: what is above it goes to queues.
	fullest = 0.9
	// batchShare is the part of the objective that a batch may take, so that two and the waits before them fit in.
	batchShare = 0.25
)

// room is how much of the ready instances' time a stage has.
type room struct {
	*route.View
	rate float64 // items/s that come
	slo  time.Duration
	part []float64 // of each ready instance's time, by position
}

func newRoom(v *route.View) *room {
	spec := v.Fleet.Spec()
	r := &room{View: v, slo: spec.Apps[spec.Stages[v.Stage].App].SLO.Latency}
	r.rate = r.items(v.Stage)
	for _, i := range v.Instances() {
		own, all := r.demand(i), 0.0
		if i.TimeShared() {
			for _, o := range v.Fleet.Sharing(i) {
				all += r.demand(o)
			}
		}
		part := 1.0
		if all > own {
			part = own / all
		}
		r.part = append(r.part, part)
	}
	return r
}

// demand is how busy an instance would be with all queries of its app, on its fastest variant.
func (r *room) demand(i *fleet.Instance) float64 {
	least := math.Inf(1)
	for k := range i.Variants() {
		if l := i.Variant(k); l.Usable() {
			least = min(least, r.takes(i, l.Variant))
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least * max(r.items(i.Stage()), 1e-3)
}

// items is how many come to a stage, in items/s.
func (r *room) items(s serving.StageID) float64 {
	spec := r.Fleet.Spec()
	app := spec.Stages[s].App
	mix := r.Monitor.Mix(app)
	each, at := pipeline.New(spec, app).MeanItems(), slices.Index(spec.Apps[app].Stages, s)
	return r.Monitor.Rate(r.Now, app, rateWindow) * mix.Mean() * each[at]
}

// takes is the time of an item on a variant of an instance, in s, in the best batch that takes a quarter of the
// objective at most, or alone; infinite where it does not run.
func (r *room) takes(i *fleet.Instance, v serving.VariantID) float64 {
	at, best := i.Find(v), math.Inf(1)
	if at < 0 || !i.Variant(at).Warm {
		return best
	}
	longest := time.Duration(batchShare * float64(r.slo))
	for n := 1; n <= i.Variant(at).Limit; n++ {
		t := r.Fleet.Latency(v, i.DeviceType(), n, i.Slots())
		if t >= profile.Unknown || n > 1 && t > longest {
			break
		}
		best = min(best, t.Seconds()/float64(n*i.Slots()))
	}
	return best
}

// carries reports whether a gear serves what comes.
func (r *room) carries(g *gear) bool {
	if g.light > 0 {
		return r.sum(g.first, 0, g.light) >= r.rate && r.sum(g.second, g.light, len(r.part)) >= r.rate*g.again
	}
	sum := 0.0
	for k, i := range r.Instances() {
		each := r.takes(i, g.first)
		if g.second != serving.None {
			each += g.again * r.takes(i, g.second)
		}
		sum += fullest * r.part[k] / each
	}
	return sum >= r.rate
}

// sum is how many queries/s some instances carry on a variant.
func (r *room) sum(v serving.VariantID, from, to int) (sum float64) {
	for k, i := range r.Instances()[from:to] {
		sum += fullest * r.part[from+k] / r.takes(i, v)
	}
	return sum
}
