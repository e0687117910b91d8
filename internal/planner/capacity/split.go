package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Splitter gives every worker that is up to one stage, for planners that load many variants on a worker (RAMSIS App.
// G: each worker belongs to one objective).
type Splitter struct {
	Spec     *serving.Spec
	Believed profile.Profile
	Snapshot *fleet.Snapshot // nil where nothing runs
	Asked    []StageDemand   // by StageID (StageDemands)
	// Down and Broken are the results of Unusable.
	Down, Broken []bool
	// OneType gives all workers of a stage the same device type. Workers of types that no stage takes stay idle.
	OneType bool
}

// Split is the workers of each stage.
type Split struct {
	// Workers are by StageID, ascending. A worker is listed for several stages where some of them share it.
	Workers [][]serving.WorkerID
	// Sharing lists the stages for which no worker was left. Each shares one that another stage has.
	Sharing []serving.StageID
	spec    *serving.Spec
	stages  map[serving.WorkerID][]serving.StageID // of workers that are shared: who has the worker, then who shares it
	places  []placed                               // beyond the first of a worker, by the snapshot and by Complete
	memory  map[typeOfStage]int64                  // bytes for a stage on shared workers of a type
	parts   []float64                              // by StageID
}

// placed is a stage at a place of a worker.
type placed struct {
	at    fleet.Key
	stage serving.StageID
}

type typeOfStage struct {
	stage serving.StageID
	typ   serving.DeviceTypeID
}

// Split returns the workers of each stage. It fails when nothing can serve some stage.
//
// A worker that serves a stage by the snapshot stays with it. Each of the others goes to the stage with the least
// capacity for its demand, where capacity is the rate of the fastest batches within the budget. A stage for which no
// worker is left shares the one that has most time and memory left for it.
func (x Splitter) Split() (*Split, error) {
	stages := len(x.Spec.Stages)
	out := &Split{Workers: make([][]serving.WorkerID, stages), spec: x.Spec, parts: make([]float64, stages)}
	able := make([]float64, stages)
	types := x.types()
	running := RunningByWorker(x.Snapshot)
	give := func(s serving.StageID, w serving.WorkerID) {
		out.Workers[s] = append(out.Workers[s], w)
		able[s] += x.rate(s, w)
	}
	var free []serving.WorkerID
	for w := range x.Spec.Workers {
		id := serving.WorkerID(w)
		if x.Down[w] {
			continue
		}
		if i, ok := running[id]; ok && (!x.OneType || x.Spec.Workers[w].DeviceType == types[i.Stage]) {
			give(i.Stage, id)
			continue
		}
		free = append(free, id)
	}
	for _, w := range free {
		best, least := serving.StageID(serving.None), math.Inf(1)
		for s := range out.Workers {
			id := serving.StageID(s)
			if x.OneType && x.Spec.Workers[w].DeviceType != types[s] || x.rate(id, w) <= 0 {
				continue
			}
			// A stage's first worker comes before any stage's second.
			share := able[s] / x.Asked[s].Rate
			if len(out.Workers[s]) == 0 {
				share = -x.Asked[s].Rate
			}
			if share < least {
				best, least = id, share
			}
		}
		if best >= 0 { // otherwise no stage can use it
			give(best, w)
		}
	}
	for s := range out.Workers {
		out.parts[s] = 1
		slices.Sort(out.Workers[s])
	}
	for _, i := range Reusable(x.Snapshot) {
		if i.Key.Ordinal > 1 {
			out.places = append(out.places, placed{i.Key, i.Stage})
		}
	}
	if err := x.share(out, able); err != nil {
		return nil, err
	}
	return out, nil
}

// types returns by StageID the device type of each stage's workers, for OneType: the one that most of its workers have
// by the snapshot, else the one whose workers carry most, each type divided among the stages that take it. Stages with
// more demand choose first.
func (x *Splitter) types() []serving.DeviceTypeID {
	out := make([]serving.DeviceTypeID, len(x.Spec.Stages))
	if !x.OneType {
		return out
	}
	up, taken := make([]float64, len(x.Spec.DeviceTypes)), make([]float64, len(x.Spec.DeviceTypes))
	for w := range x.Spec.Workers {
		if !x.Down[w] {
			up[x.Spec.Workers[w].DeviceType]++
		}
	}
	runs := make([][]int, len(out))
	for s := range runs {
		runs[s] = make([]int, len(up))
	}
	for w, i := range RunningByWorker(x.Snapshot) {
		if !x.Down[w] {
			runs[i.Stage][x.Spec.Workers[w].DeviceType]++
		}
	}
	for _, s := range x.byDemand() {
		most := -1.0
		for d := range up {
			rate := bestRate(x.Believed, x.Spec, s, serving.DeviceTypeID(d), x.Asked[s].Budget, x.Broken)
			score := rate * up[d] / (1 + taken[d])
			if rate > 0 && runs[s][d] > 0 {
				score = math.MaxFloat32 * float64(runs[s][d])
			}
			if score > most {
				most, out[s] = score, serving.DeviceTypeID(d)
			}
		}
		taken[out[s]]++
	}
	return out
}

// byDemand lists the stages, those with most demand first.
func (x *Splitter) byDemand() []serving.StageID {
	out := make([]serving.StageID, len(x.Spec.Stages))
	for s := range out {
		out[s] = serving.StageID(s)
	}
	slices.SortStableFunc(out, func(a, b serving.StageID) int { return cmp.Compare(x.Asked[b].Rate, x.Asked[a].Rate) })
	return out
}

func (x *Splitter) rate(s serving.StageID, w serving.WorkerID) float64 {
	return bestRate(x.Believed, x.Spec, s, x.Spec.Workers[w].DeviceType, x.Asked[s].Budget, x.Broken)
}

// share gives stages without a worker one that others have. able is by StageID what the workers of a stage carry.
func (x *Splitter) share(out *Split, able []float64) error {
	load := make([]float64, len(x.Spec.Workers)) // the part of its time that each worker is busy
	for s, workers := range out.Workers {
		for _, w := range workers {
			load[w] += x.load(serving.StageID(s), able)
		}
	}
	for _, s := range x.byDemand() {
		if len(out.Workers[s]) > 0 {
			continue
		}
		best, least := serving.WorkerID(serving.None), math.Inf(1)
		for w := range x.Spec.Workers {
			id := serving.WorkerID(w)
			if x.Down[w] || x.rate(s, id) <= 0 || !x.holds(append(out.on(id), s), id) {
				continue
			}
			busy := load[w] + x.Asked[s].Rate/x.rate(s, id)
			if out.place(s, id) > 0 && busy <= 1 {
				busy = -1 // it is loaded there already
			}
			if busy < least {
				best, least = id, busy
			}
		}
		if best < 0 {
			return x.noWorker(out, s)
		}
		out.shareWorker(s, best)
		able[s] = x.rate(s, best)
		load[best] += x.load(s, able)
	}
	x.divide(out, able)
	return nil
}

// noWorker says why a stage can share no worker.
func (x *Splitter) noWorker(out *Split, s serving.StageID) error {
	var devices []serving.DeviceTypeID
	able := false
	for w := range x.Spec.Workers {
		if !x.Down[w] {
			devices = append(devices, x.Spec.Workers[w].DeviceType)
			able = able || x.rate(s, serving.WorkerID(w)) > 0
		}
	}
	if !able {
		return Unservable(x.Believed, x.Spec, s, x.Asked[s], devices, x.Broken)
	}
	return fmt.Errorf("app %q: no worker is left for stage %q, and none has memory for it beside the fastest variants "+
		"of others: %d stages share %d workers", x.Spec.Apps[x.Asked[s].App].Name, x.Spec.Stages[s].Name,
		len(out.Workers), len(devices))
}

// on returns the stages of a worker. The caller may append to the result.
func (p *Split) on(w serving.WorkerID) []serving.StageID {
	if list, ok := p.stages[w]; ok {
		return slices.Clip(list)
	}
	for s := range p.Workers {
		if slices.Contains(p.Workers[s], w) {
			return []serving.StageID{serving.StageID(s)}
		}
	}
	return nil
}

func (p *Split) shareWorker(s serving.StageID, w serving.WorkerID) {
	if p.stages == nil {
		p.stages = make(map[serving.WorkerID][]serving.StageID)
	}
	if others := p.on(w); len(others) > 0 {
		p.stages[w] = append(others, s)
		p.Sharing = append(p.Sharing, s)
	}
	p.Workers[s] = []serving.WorkerID{w}
}

// place returns the place beyond the first at which a stage runs on a worker; 0 for none.
func (p *Split) place(s serving.StageID, w serving.WorkerID) int32 {
	for _, o := range p.places {
		if o.at.Worker == w && o.stage == s {
			return o.at.Ordinal
		}
	}
	return 0
}

// load returns the part of their time that the workers of a stage need for its demand.
func (x *Splitter) load(s serving.StageID, able []float64) float64 {
	if able[s] <= 0 {
		return 1 // they cannot serve it, and are not for others
	}
	return x.Asked[s].Rate / able[s]
}

// holds reports whether a worker has memory for the fastest variant of each of some stages, with batches of one.
func (x *Splitter) holds(stages []serving.StageID, w serving.WorkerID) bool {
	d := x.Spec.Workers[w].DeviceType
	memory := x.Spec.DeviceTypes[d].MemoryBytes
	need := int64(0)
	for _, s := range stages {
		need += x.fastestNeeds(s, d)
	}
	return memory <= 0 || need <= memory
}

// fastestNeeds returns the bytes that the fastest variant of a stage takes on a device type.
func (x *Splitter) fastestNeeds(s serving.StageID, d serving.DeviceTypeID) (need int64) {
	least := profile.Unknown
	for _, v := range x.Spec.Stages[s].Variants {
		y := &x.Spec.Variants[v]
		if x.Broken[v] || y.Retired || x.Spec.BelowFloor(v) {
			continue
		}
		if took := x.Believed.Latency(v, d, 1, 1); took < least {
			least, need = took, y.MemoryBytes+y.ItemBytes
		}
	}
	return need
}

// divide divides the time and the memory of shared workers among their stages. A stage may use the time that the
// others leave at their demand or, if there is too little, a part in proportion to its demand. Of the memory each gets
// as much as its fastest variant takes, and an equal part of the rest.
func (x *Splitter) divide(out *Split, able []float64) {
	out.memory = make(map[typeOfStage]int64)
	lost := make([]float64, len(out.Workers)) // workers' worth of time that others take, by StageID
	for w := range x.Spec.Workers {
		stages := out.stages[serving.WorkerID(w)]
		if len(stages) < 2 {
			continue
		}
		d := x.Spec.Workers[w].DeviceType
		all, rest := 0.0, x.Spec.DeviceTypes[d].MemoryBytes
		for _, s := range stages {
			all += x.load(s, able)
			rest -= x.fastestNeeds(s, d)
		}
		for _, s := range stages {
			own := x.load(s, able)
			lost[s] += 1 - max(1-(all-own), own/all)
			if x.Spec.DeviceTypes[d].MemoryBytes > 0 {
				key := typeOfStage{s, d}
				part := x.fastestNeeds(s, d) + rest/int64(len(stages))
				if least, ok := out.memory[key]; ok {
					part = min(part, least)
				}
				out.memory[key] = part
			}
		}
	}
	for s := range lost {
		out.parts[s] = 1 - lost[s]/float64(max(len(out.Workers[s]), 1))
	}
}

// TimePart returns the part of the time of a stage's workers that is left to it, in (0, 1]. It is 1 where the stage
// shares no worker.
func (p *Split) TimePart(s serving.StageID) float64 { return p.parts[s] }

// Memory returns the bytes that the variants of a stage may take together on each of its workers of a type; 0 where
// there is no limit.
func (p *Split) Memory(s serving.StageID, d serving.DeviceTypeID) int64 {
	if part, ok := p.memory[typeOfStage{s, d}]; ok {
		return part
	}
	return p.spec.DeviceTypes[d].MemoryBytes
}

// Complete gives the instances that share a worker their places, has them take turns, and notes in the plan which
// stages share. The plan must have one instance for each stage of each worker.
func (p *Split) Complete(out *plan.Plan) {
	out.Sharing = p.Sharing
	for n := range out.Instances {
		i := &out.Instances[n]
		stages := p.stages[i.Worker]
		if len(stages) == 0 {
			continue
		}
		i.TimeShared = true
		if stages[0] == i.Stage {
			i.Place = 1
			continue
		}
		if i.Place = p.place(i.Stage, i.Worker); i.Place > 0 {
			continue
		}
		at := fleet.Key{Worker: i.Worker, Ordinal: 2}
		for slices.ContainsFunc(p.places, func(o placed) bool { return o.at == at }) {
			at.Ordinal++
		}
		i.Place = at.Ordinal
		p.places = append(p.places, placed{at, i.Stage})
	}
	if len(p.stages) > 0 {
		out.Sort()
	}
}

// bestRate returns the items/s that a worker of a type serves of a stage, in the best batch that takes at most within.
func bestRate(believed profile.Profile, spec *serving.Spec, s serving.StageID, d serving.DeviceTypeID,
	within time.Duration,
	broken []bool) float64 {
	out := 0.0
	for _, v := range spec.Stages[s].Variants {
		if broken[v] || spec.BelowFloor(v) {
			continue
		}
		for b := 1; b <= spec.Variants[v].MaxBatch; b++ {
			l := believed.Latency(v, d, b, 1)
			if l > within {
				break
			}
			out = max(out, float64(b)/l.Seconds())
		}
	}
	return out
}
