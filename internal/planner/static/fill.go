package static

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// filling decides what the instances of a proposed placement load: only what is fast enough where they are, and no more
// than memory holds. Where memory holds everything, everything is loaded. Elsewhere every stage first gets one variant;
// then stages that do not carry their demand get copies; then accuracy rises; then the rest is filled.
type filling struct {
	spec     *serving.Spec
	believed profile.Profile
	asked    []capacity.StageDemand // by StageID
	// batchTime is Planner.batchTime.
	batchTime func(app *serving.App, budget time.Duration) (within time.Duration, fraction float64)
	alone     bool         // queries run one at a time
	options   [][][]option // by DeviceTypeID of a worker, StageID; in the order of the configuration
	places    []place      // by index in the proposal
	byWorker  [][]int      // by WorkerID, indices of places
	free      []int64      // by WorkerID, bytes
	carries   []float64    // by StageID, items/s of what is loaded
	copies    []int        // by StageID, places with a usable variant
}

// option is a variant that may be loaded on a kind of machine.
type option struct {
	id         serving.VariantID
	accuracy   float64
	rate       float64 // items/s with full batches, or one at a time
	need       int64   // bytes
	belowFloor bool    // only queries that are pinned to it run on it
}

// place is a proposed instance and what of its options it loads.
type place struct {
	worker serving.WorkerID
	stage  serving.StageID
	among  []option
	loads  []bool
}

// fill returns the proposed instances that load anything, each with what it loads. It fails when a stage is left with
// nothing.
func (p *Planner) fill(r *plan.Request) ([]numbered, error) {
	f := p.newFilling(r)
	crowded := f.loadWhereAllFits()
	if err := f.oneOfEach(crowded); err != nil {
		return nil, err
	}
	for _, w := range crowded {
		f.copiesForDemand(w)
	}
	for _, w := range crowded {
		f.raiseAccuracy(w)
	}
	for _, w := range crowded {
		f.useTheRest(w)
	}
	active := map[serving.StageID]float64{}
	if p.ByDemand {
		active = f.accuracyForDemand()
	}
	return f.instances(p.Instances, active), nil
}

func (p *Planner) newFilling(r *plan.Request) *filling {
	spec := r.Spec
	f := &filling{
		spec: spec, believed: p.believed(r), asked: capacity.ServableDemands(p.believed(r), spec, r.Rates),
		batchTime: p.batchTime, alone: p.Unbatched, byWorker: make([][]int, len(spec.Workers)),
		free: make([]int64, len(spec.Workers)), carries: make([]float64, len(spec.Stages)),
		copies: make([]int, len(spec.Stages)), options: make([][][]option, len(spec.DeviceTypes)),
	}
	for w := range spec.Workers {
		if f.free[w] = spec.DeviceTypes[spec.Workers[w].DeviceType].MemoryBytes; f.free[w] <= 0 {
			f.free[w] = math.MaxInt64
		}
	}
	for n, i := range p.Instances {
		among := f.among(spec.Workers[i.Worker].DeviceType, i.Stage)
		f.places = append(f.places, place{i.Worker, i.Stage, among, make([]bool, len(among))})
		f.byWorker[i.Worker] = append(f.byWorker[i.Worker], n)
	}
	return f
}

// among returns the options of a stage on a device type.
func (f *filling) among(d serving.DeviceTypeID, s serving.StageID) []option {
	if f.options[d] == nil {
		f.options[d] = make([][]option, len(f.spec.Stages))
	}
	out := &f.options[d][s]
	if *out == nil {
		*out = []option{}
		for _, v := range f.spec.Stages[s].Variants {
			x := &f.spec.Variants[v]
			within, fraction := f.batchTime(&f.spec.Apps[f.spec.Stages[s].App], f.asked[s].Budget)
			limit := largestBatch(f.believed, f.spec, v, d, 1, within, fraction)
			limit = min(limit, fitting(f.spec, v, d))
			if x.Retired || limit < 1 {
				continue
			}
			batch := limit
			if f.alone {
				batch = 1
			}
			*out = append(*out, option{
				id: v, accuracy: x.Accuracy, rate: float64(batch) / f.believed.Latency(v, d, batch, 1).Seconds(),
				need: x.MemoryBytes + int64(limit)*x.ItemBytes, belowFloor: f.spec.BelowFloor(v),
			})
		}
	}
	return *out
}

// load loads the k-th option of a place.
func (f *filling) load(n, k int) {
	p := &f.places[n]
	had := p.best(rate)
	p.loads[k] = true
	f.free[p.worker] -= p.among[k].need
	if !p.among[k].belowFloor {
		if had < 0 {
			f.copies[p.stage]++
		}
		f.carries[p.stage] += max(p.among[k].rate-max(had, 0), 0)
	}
}

// rate and accuracy are what an option can be compared by.
func rate(o *option) float64     { return o.rate }
func accuracy(o *option) float64 { return o.accuracy }

// best returns the most that a usable variant has which the place loads; -1 where it loads none.
func (p *place) best(of func(*option) float64) float64 {
	out := -1.0
	for k := range p.among {
		if p.loads[k] && !p.among[k].belowFloor {
			out = max(out, of(&p.among[k]))
		}
	}
	return out
}

// loadWhereAllFits loads everything on workers whose memory holds it, and returns the other workers.
func (f *filling) loadWhereAllFits() (crowded []serving.WorkerID) {
	for w, here := range f.byWorker {
		need := int64(0)
		for _, n := range here {
			for k := range f.places[n].among {
				need += f.places[n].among[k].need
			}
		}
		if need > f.free[w] {
			crowded = append(crowded, serving.WorkerID(w))
			continue
		}
		for _, n := range here {
			for k := range f.places[n].among {
				f.load(n, k)
			}
		}
	}
	return crowded
}

// lacking is a stage that has no variant yet, and what its smallest one needs, in bytes.
type lacking struct {
	stage serving.StageID
	least int64
}

// packingNodes bounds the search for a packing where the simple rules find none.
const packingNodes = 100_000

// oneOfEach gives one variant to every stage that has none. Stages are packed by their smallest variants, the largest
// stage first, on the emptiest worker; where that leaves a stage out, on the fullest worker that holds it; and where
// that does, too, in every way. Then each is exchanged for the one that serves most of the stage's demand, the more
// accurate of two that serve it all.
func (f *filling) oneOfEach(crowded []serving.WorkerID) error {
	var list []lacking
	for s := range f.spec.Stages {
		if f.copies[s] > 0 {
			continue
		}
		least := int64(math.MaxInt64)
		for n := range f.places {
			if p := &f.places[n]; int(p.stage) == s {
				if k := p.smallest(); k >= 0 {
					least = min(least, p.among[k].need)
				}
			}
		}
		if least == math.MaxInt64 {
			if f.closed(serving.StageID(s)) || !f.proposed(serving.StageID(s)) {
				continue
			}
			return f.unservable(serving.StageID(s))
		}
		list = append(list, lacking{serving.StageID(s), least})
	}
	slices.SortStableFunc(list, func(a, b lacking) int { return cmp.Compare(b.least, a.least) })
	first, left := f.pack(list, crowded, true)
	if left != nil {
		if first, left = f.pack(list, crowded, false); left != nil {
			nodes := packingNodes
			if first = f.search(list, crowded, &nodes); first == nil {
				_, _ = f.pack(list[:slices.Index(list, *left)], crowded, false)
				return f.crowdedOut(left.stage, left.least)
			}
		}
	}
	slices.SortStableFunc(first, func(a, b int) int {
		return cmp.Compare(f.served(f.places[a].stage), f.served(f.places[b].stage))
	})
	for _, n := range first {
		p := &f.places[n]
		f.unload(n)
		f.load(n, p.mostServing(f.free[p.worker], f.asked[p.stage].Rate))
	}
	return nil
}

// pack loads the smallest variant of each stage on the emptiest or the fullest worker that holds it, and returns the
// places. If one finds no room, it returns that, and loads nothing.
func (f *filling) pack(list []lacking, crowded []serving.WorkerID, emptiest bool) (first []int, left *lacking) {
	for k := range list {
		n := f.roomiest(list[k].stage, crowded, emptiest)
		if n < 0 {
			for _, n := range first {
				f.unload(n)
			}
			return nil, &list[k]
		}
		f.load(n, f.places[n].smallest())
		first = append(first, n)
	}
	return first, nil
}

// search is pack in every way, as far as nodes last. It returns nil when it finds none.
func (f *filling) search(list []lacking, crowded []serving.WorkerID, nodes *int) []int {
	if len(list) == 0 {
		return []int{}
	}
	for _, w := range crowded {
		for _, n := range f.byWorker[w] {
			p := &f.places[n]
			if p.stage != list[0].stage {
				continue
			}
			k := p.smallest()
			if *nodes--; *nodes < 0 || k < 0 || p.among[k].need > f.free[w] {
				continue
			}
			f.load(n, k)
			if rest := f.search(list[1:], crowded, nodes); rest != nil {
				return append(rest, n)
			}
			f.unload(n)
		}
	}
	return nil
}

// closed tells whether nothing is asked of a stage any more.
func (f *filling) closed(s serving.StageID) bool { return f.spec.Apps[f.spec.Stages[s].App].Closed }

// proposed tells whether any instance of a stage is proposed.
func (f *filling) proposed(s serving.StageID) bool {
	return slices.ContainsFunc(f.places, func(p place) bool { return p.stage == s })
}

// smallest returns the option that needs the least memory of those that any query may run on; -1 where there is none.
func (p *place) smallest() int {
	out := -1
	for k := range p.among {
		if !p.among[k].belowFloor && (out < 0 || p.among[k].need < p.among[out].need) {
			out = k
		}
	}
	return out
}

// mostServing returns the option not yet loaded that serves most of a demand in items/s within so much memory, of
// equals the most accurate, of those the smallest; -1 where none fits.
func (p *place) mostServing(free int64, demand float64) int {
	out := -1
	for k := range p.among {
		o := &p.among[k]
		if o.belowFloor || p.loads[k] || o.need > free {
			continue
		}
		if out < 0 || cmp.Or(cmp.Compare(min(o.rate, demand), min(p.among[out].rate, demand)),
			cmp.Compare(o.accuracy, p.among[out].accuracy), cmp.Compare(p.among[out].need, o.need),
			cmp.Compare(o.rate, p.among[out].rate)) > 0 {
			out = k
		}
	}
	return out
}

// unload empties a place that loads one variant.
func (f *filling) unload(n int) {
	p := &f.places[n]
	k := slices.Index(p.loads, true)
	p.loads[k] = false
	f.free[p.worker] += p.among[k].need
	f.carries[p.stage] -= p.among[k].rate
	f.copies[p.stage]--
}

// roomiest returns the place of a stage with room for its smallest variant, on the emptiest or the fullest worker; -1
// where there is none.
func (f *filling) roomiest(s serving.StageID, crowded []serving.WorkerID, emptiest bool) int {
	out := -1
	for _, w := range crowded {
		for _, n := range f.byWorker[w] {
			p := &f.places[n]
			if p.stage != s {
				continue
			}
			k := p.smallest()
			if k < 0 || p.among[k].need > f.free[w] {
				continue
			}
			if out < 0 || (f.free[w] > f.free[f.places[out].worker]) == emptiest &&
				f.free[w] != f.free[f.places[out].worker] {
				out = n
			}
		}
	}
	return out
}

// served is the part of a stage's demand that is carried, which may be above 1.
func (f *filling) served(s serving.StageID) float64 { return f.carries[s] / f.asked[s].Rate }

// copiesForDemand adds stages to a worker that carry less than their demand, the most wanting first.
func (f *filling) copiesForDemand(w serving.WorkerID) {
	for {
		best, which := -1, -1
		for _, n := range f.byWorker[w] {
			p := &f.places[n]
			if p.best(rate) >= 0 || f.served(p.stage) >= 1 ||
				best >= 0 && f.served(p.stage) >= f.served(f.places[best].stage) {
				continue
			}
			if k := p.mostServing(f.free[w], f.asked[p.stage].Rate-f.carries[p.stage]); k >= 0 {
				best, which = n, k
			}
		}
		if best < 0 {
			return
		}
		f.load(best, which)
	}
}

// raiseAccuracy adds more accurate variants to what a worker has, to the least accurate stage first.
func (f *filling) raiseAccuracy(w serving.WorkerID) {
	for {
		best, which, least := -1, -1, math.Inf(1)
		for _, n := range f.byWorker[w] {
			p := &f.places[n]
			has := p.best(accuracy)
			if has < 0 || has/f.asked[p.stage].BestAccuracy >= least {
				continue
			}
			k := p.mostAccurate(f.free[w])
			if k >= 0 && p.among[k].accuracy > has {
				best, which, least = n, k, has/f.asked[p.stage].BestAccuracy
			}
		}
		if best < 0 {
			return
		}
		f.load(best, which)
	}
}

// mostAccurate returns the most accurate option not yet loaded that fits into so much memory; -1 where none does.
func (p *place) mostAccurate(free int64) int {
	out := -1
	for k := range p.among {
		if o := &p.among[k]; !p.loads[k] && o.need <= free && (out < 0 ||
			cmp.Or(cmp.Compare(o.accuracy, p.among[out].accuracy), cmp.Compare(p.among[out].need, o.need)) > 0) {
			out = k
		}
	}
	return out
}

// useTheRest fills what is left of a worker's memory: with stages that are not there, those with the fewest copies
// first, then with all that fits, the most accurate variants of each stage first.
func (f *filling) useTheRest(w serving.WorkerID) {
	here := slices.Clone(f.byWorker[w])
	slices.SortStableFunc(here, func(a, b int) int {
		return cmp.Compare(f.copies[f.places[a].stage], f.copies[f.places[b].stage])
	})
	for _, n := range here {
		if p := &f.places[n]; p.best(rate) < 0 {
			if k := p.mostServing(f.free[w], f.asked[p.stage].Rate); k >= 0 {
				f.load(n, k)
			}
		}
	}
	for _, n := range here {
		for k := f.places[n].mostAccurate(f.free[w]); k >= 0; k = f.places[n].mostAccurate(f.free[w]) {
			f.load(n, k)
		}
	}
}

// instances returns the proposed instances with what they load: in the order of the configuration, but that the most
// accurate one of at most the accuracy in active comes first, by StageID. They share the cores that the proposal gave.
func (f *filling) instances(proposed []Instance, active map[serving.StageID]float64) (out []numbered) {
	for n := range f.places {
		p, i := &f.places[n], proposed[n]
		i.Variants = nil
		first := -1
		for k, loads := range p.loads {
			if !loads {
				continue
			}
			i.Variants = append(i.Variants, p.among[k].id)
			if most, ok := active[p.stage]; ok && !p.among[k].belowFloor && (first < 0 ||
				closerTo(most, p.among[k].accuracy, f.spec.Variants[i.Variants[first]].Accuracy)) {
				first = len(i.Variants) - 1
			}
		}
		if len(i.Variants) == 0 {
			continue
		}
		if first > 0 {
			v := i.Variants[first]
			i.Variants = slices.Insert(slices.Delete(i.Variants, first, first+1), 0, v)
		}
		out = append(out, numbered{i, int32(n) + 1})
	}
	return out
}

// closerTo tells whether accuracy a is wanted rather than b where at most the given one is: the highest that is not
// above, or else the lowest.
func closerTo(most, a, b float64) bool {
	if (a <= most) != (b <= most) {
		return a <= most
	}
	if a <= most {
		return a > b
	}
	return a < b
}

// unservable says why no variant of a stage can run on any worker.
func (f *filling) unservable(s serving.StageID) error {
	var devices []serving.DeviceTypeID
	for _, w := range f.spec.Workers {
		if !slices.Contains(devices, w.DeviceType) {
			devices = append(devices, w.DeviceType)
		}
	}
	ask := capacity.Asked{Stage: s, Budget: f.asked[s].Budget, Fraction: 1}
	return capacity.Unserved(f.believed, f.spec, ask, devices, make([]bool, len(f.spec.Variants)))
}

// crowdedOut says that the smallest variant of a stage finds no room beside those of the other stages.
func (f *filling) crowdedOut(s serving.StageID, least int64) error {
	room, at := int64(-1), serving.DeviceTypeID(0)
	for n := range f.places {
		p := &f.places[n]
		if p.stage == s && p.smallest() >= 0 && f.free[p.worker] > room {
			room, at = f.free[p.worker], f.spec.Workers[p.worker].DeviceType
		}
	}
	d := &f.spec.DeviceTypes[at]
	app := f.spec.Apps[f.spec.Stages[s].App].Name
	return fmt.Errorf("app %q: memory does not hold one variant of every stage: the smallest of stage %q needs %d "+
		"bytes, and %d are left beside the others. The least change that mends it is memory of %d bytes for device "+
		"type %q (now %d), or one worker more", app, f.spec.Stages[s].Name, least, room, d.MemoryBytes+least-room,
		d.Name, d.MemoryBytes)
}

// largestBatch returns the batch limit of a variant by its stage's budget, in items; 0 where it is too slow.
func largestBatch(believed profile.Profile, spec *serving.Spec, v serving.VariantID, d serving.DeviceTypeID, slots int,
	budget time.Duration, fraction float64) int {
	limit := profile.BatchLimit(believed, spec, v, d, slots, time.Duration(fraction*float64(budget)))
	if limit == 0 && believed.Latency(v, d, 1, slots) <= budget {
		limit = 1 // one item meets the objective, but not after waiting for another batch
	}
	return limit
}

// fitting returns the items of the largest batch of a variant that the memory of a device type holds; 0 where it does
// not hold the variant.
func fitting(spec *serving.Spec, v serving.VariantID, d serving.DeviceTypeID) int {
	x, memory := &spec.Variants[v], spec.DeviceTypes[d].MemoryBytes
	switch {
	case memory <= 0:
		return x.MaxBatch
	case x.MemoryBytes > memory:
		return 0
	case x.ItemBytes <= 0:
		return x.MaxBatch
	}
	return int(min(int64(x.MaxBatch), (memory-x.MemoryBytes)/x.ItemBytes))
}
