package scrooge

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// world is a request as allocation and placement see it. Machine types are numbered as the spec's device types.
type request struct {
	slackFactor float64 // the objective over the part of it that is planned with
	o           Options
	spec        *serving.Spec
	believed    profile.Profile
	running     []fleet.InstanceSnapshot // what does not drain
	prices      []float64                // by device type, in $/h, above 0
	unpriced    bool                     // no type has a price
	workers     [][]serving.WorkerID     // by device type: those that are not down
	pipelines   []pipeline
	rates       []float64 // queries/s by AppID, head-room included
}

// pipeline is an app.
type pipeline struct {
	app    serving.AppID
	stages []stage // in the app's order
	budget time.Duration
}

// stage is a module with all that it can run as.
type stage struct {
	id    serving.StageID
	rate  float64 // items/s at the whole of the demand
	next  []int
	modes []Mode // Tag is the VariantID
}

const (
	// mostLevels bounds the concurrency that is planned for.
	maxSlots = 32
	// guessed is the concurrency that is planned for at most where the profile cannot tell what was measured.
	maxUnmeasuredSlots = 8
	// gift is what a type without a price counts as, of the dearest one's: less of it is better all the same.
	unpricedCost = 1e-6
	// pays is by how much a level of concurrency must raise the rate to be worth while: less is noise.
	minGain = 1e-3
)

// read makes a world of a request.
func (p *Planner) read(r plan.Request, c margin) *request {
	x := &request{o: p.Options, spec: r.Spec, believed: p.Profile}
	if r.Beliefs != nil {
		x.believed = r.Beliefs
	}
	down, broken := capacity.Unusable(r.Spec, r.Snapshot)
	x.running, x.workers = capacity.Reusable(r.Snapshot), capacity.UsableWorkers(r.Spec, down)
	x.unpriced, x.slackFactor = true, 1/c.part
	for d := range r.Spec.DeviceTypes {
		x.prices = append(x.prices, r.Price(serving.DeviceTypeID(d)))
		x.unpriced = x.unpriced && x.prices[d] <= 0
	}
	dearest := slices.Max(append(x.prices, 0))
	for d := range x.prices {
		if x.unpriced {
			x.prices[d] = 1 // where nothing has a price, machines are counted
		}
		x.prices[d] = max(x.prices[d], dearest*unpricedCost)
	}
	x.rates = capacity.Rates(&r, p.Options.Headroom)
	asked := capacity.StageDemands(r.Spec, x.rates)
	for a := range r.Spec.Apps {
		app := &r.Spec.Apps[a]
		g := pipeline{app: serving.AppID(a), budget: time.Duration(c.part * float64(app.SLO.Latency-app.Slack))}
		at := make(map[serving.StageID]int, len(app.Stages))
		for k, s := range app.Stages {
			at[s] = k
		}
		for _, s := range app.Stages {
			st := stage{id: s, rate: max(asked[s].Rate, capacity.MinRate), modes: x.modes(s, app.Floor, broken)}
			x.addBursts(&st, c.burstFactor*st.rate/max(x.rates[a], capacity.MinRate))
			for _, e := range r.Spec.Stages[s].Next {
				if to := at[e.To]; !slices.Contains(st.next, to) {
					st.next = append(st.next, to)
				}
			}
			g.stages = append(g.stages, st)
		}
		x.pipelines = append(x.pipelines, g)
	}
	return x
}

// bursts gives the modes of a stage what it is for items to come together, so many for a query (ours: Eq. 3 spreads
// them evenly over time). A machine is sent its share of them.
func (x *request) addBursts(s *stage, items float64) {
	for k := range s.modes {
		m := &s.modes[k]
		share := min(1, m.Rate()/s.rate)
		rounds := math.Ceil(items * share / float64(m.Batch*m.Slots))
		m.Burst = max(0, time.Duration((rounds-1)*float64(m.Latency)))
	}
}

// modes lists what a stage can run as: on every type of which a machine is there, every variant that meets the floor,
// in every batch size and at every concurrency that was measured, up to the level at which more batches at once serve
// no more (§3.2). Those that another mode of the type beats in everything are left out.
func (x *request) modes(s serving.StageID, floor float64, broken []bool) (out []Mode) {
	tells := profile.MeasuredPoints(x.believed)
	for d := range x.spec.DeviceTypes {
		if len(x.workers[d]) == 0 {
			continue
		}
		var all []Mode
		for _, v := range x.variants(s, floor, broken) {
			all = append(all, x.points(v, serving.DeviceTypeID(d), tells)...)
		}
		out = append(out, undominated(all)...)
	}
	return out
}

// variants lists those of a stage that may be used.
func (x *request) variants(s serving.StageID, floor float64, broken []bool) (out []serving.VariantID) {
	best := serving.VariantID(serving.None)
	for _, v := range x.spec.Stages[s].Variants {
		if broken[v] || x.spec.Variants[v].Accuracy < floor {
			continue
		}
		out = append(out, v)
		if best == serving.None || x.spec.Variants[v].Accuracy > x.spec.Variants[best].Accuracy {
			best = v
		}
	}
	if x.o.MostAccurate && best != serving.None {
		return []serving.VariantID{best}
	}
	return out
}

// points lists the modes of a variant on a type.
func (x *request) points(v serving.VariantID, d serving.DeviceTypeID, tells func(serving.VariantID, serving.DeviceTypeID,
	int, int) bool) (out []Mode) {
	variant, levels := &x.spec.Variants[v], maxSlots
	sizes := make([]int, 0, variant.MaxBatch)
	if tells == nil {
		levels = maxUnmeasuredSlots
		for b := 1; b < variant.MaxBatch; b *= 2 {
			sizes = append(sizes, b)
		}
		sizes = append(sizes, variant.MaxBatch)
	} else {
		for b := range variant.MaxBatch {
			sizes = append(sizes, b+1)
		}
	}
	if x.o.Single {
		levels = 1
	}
	for _, b := range sizes {
		last := 0.0
		for c := 1; c <= levels; c++ {
			if tells != nil && !tells(v, d, b, c) {
				continue
			}
			took := x.believed.Latency(v, d, b, c)
			if took >= profile.Unknown || took <= 0 || !x.fitsMemory(v, d, b*c) {
				break
			}
			m := Mode{Type: int(d), Batch: b, Slots: c, Latency: took, Tag: int(v)}
			if m.Rate() <= last*(1+minGain) {
				break
			}
			last = m.Rate()
			out = append(out, m)
		}
	}
	return out
}

// fits tells whether a variant with so many items at once fits into the memory of a machine.
func (x *request) fitsMemory(v serving.VariantID, d serving.DeviceTypeID, items int) bool {
	has := x.spec.DeviceTypes[d].MemoryBytes
	return has <= 0 || x.memory(v, items) <= has
}

// needs is the memory that a variant takes with so many items at once.
func (x *request) memory(v serving.VariantID, items int) int64 {
	return x.spec.Variants[v].MemoryBytes + int64(items)*x.spec.Variants[v].ItemBytes
}

// efficient leaves out the modes of one type that another is no worse than in batch size, time and rate: whatever the
// rate sent to them, it is in time when they are and takes no more of a machine.
func undominated(all []Mode) (out []Mode) {
	for i := range all {
		a, beaten := &all[i], false
		for j := range all {
			b := &all[j]
			no := b.Batch <= a.Batch && b.Latency <= a.Latency && b.Rate() >= a.Rate() && b.Slots*b.Batch >= a.Slots*a.Batch
			same := b.Batch == a.Batch && b.Latency == a.Latency && b.Rate() == a.Rate()
			if i != j && no && (!same || j < i) {
				beaten = true
				break
			}
		}
		if !beaten {
			out = append(out, *a)
		}
	}
	return out
}
