package infaas

import (
	"slices"

	"github.com/sluice-serving/sluice/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// state is a placement that actions change, as counts: which of several like workers hosts a variant makes no
// difference.
type state struct {
	o       Options
	spec    *serving.Spec
	running map[serving.WorkerID]fleet.InstanceSnapshot
	groups  []group
	options []option
	stages  []stage // by StageID
	counts  []int   // workers by option
	idle    []int   // workers that host nothing, by group
}

// group is workers of one device type that are not down.
type group struct {
	device  serving.DeviceTypeID
	workers []serving.WorkerID
}

// option is a variant that the workers of a group can serve.
type option struct {
	group    int
	stage    serving.StageID
	variant  serving.VariantID
	limit    int     // items of a batch
	rate     float64 // items/s that a worker carries
	accuracy float64 // accuracy divided by that of the stage's most accurate variant
}

// stage is what is asked of a stage and what it has.
type stage struct {
	capacity.StageDemand
	need     float64 // items/s, head-room included
	weight   float64 // of its mean value among all stages': importance times queries/s
	options  []int   // by falling value, then rate
	workers  int     // workers
	rate     float64 // items/s they carry
	weighted float64 // sum of rate times value over them
}

// free stands for no option in an action: a worker that hosts nothing before or after it.
const idle = -1

// little is the relative difference below which two figures are the same.
const tolerance = 1e-9

// read turns a request into the placement that runs. It fails when a stage cannot be served by anything.
func (p *Planner) read(r plan.Request) (*state, error) {
	x := &state{o: p.Options.filled(), spec: r.Spec, running: capacity.RunningByWorker(r.Snapshot)}
	down, broken := capacity.Unusable(r.Spec, r.Snapshot)
	for w, y := range r.Spec.Workers {
		if down[w] {
			continue
		}
		at := slices.IndexFunc(x.groups, func(g group) bool { return g.device == y.DeviceType })
		if at < 0 {
			at = len(x.groups)
			x.groups = append(x.groups, group{device: y.DeviceType})
		}
		x.groups[at].workers = append(x.groups[at].workers, serving.WorkerID(w))
	}
	devices := make([]serving.DeviceTypeID, len(x.groups))
	x.idle = make([]int, len(x.groups))
	for g := range x.groups {
		devices[g], x.idle[g] = x.groups[g].device, len(x.groups[g].workers)
	}
	rule := capacity.BatchRule{Fraction: x.o.Fraction, Batches: x.o.Batches}
	for s, asked := range capacity.StageDemands(r.Spec, r.Rates) {
		app := &r.Spec.Apps[asked.App]
		st := stage{StageDemand: asked, need: asked.Rate * x.o.Headroom}
		if asked.FanOut > 0 {
			st.weight = app.Weight * asked.Rate / asked.FanOut / float64(len(app.Stages))
		}
		for g := range x.groups {
			for _, v := range r.Spec.Stages[s].Variants {
				if broken[v] {
					continue
				}
				if limit, rate := rule.Capacity(r.Believed(p.Profile), r.Spec, v, x.groups[g].device, asked.Budget); limit >
					0 {
					st.options = append(st.options, len(x.options))
					x.options = append(x.options, option{
						g, serving.StageID(s), v, limit, rate, asked.NormalizedAccuracy(&r.Spec.Variants[v]),
					})
				}
			}
		}
		if len(st.options) == 0 {
			return nil, capacity.Unservable(r.Believed(p.Profile), r.Spec, serving.StageID(s), asked, devices, broken)
		}
		slices.SortStableFunc(st.options, func(a, b int) int {
			switch y, z := &x.options[a], &x.options[b]; {
			case y.accuracy > z.accuracy || y.accuracy == z.accuracy && y.rate > z.rate:
				return -1
			case y.accuracy < z.accuracy || y.rate < z.rate:
				return 1
			}
			return a - b
		})
		x.stages = append(x.stages, st)
	}
	x.counts = make([]int, len(x.options))
	for g := range x.groups {
		for _, w := range x.groups[g].workers {
			if k := x.hosted(g, w); k >= 0 {
				x.move(idle, k)
			}
		}
	}
	return x, nil
}

// hosted is the option that a worker of a group runs, or free: also when what it runs is broken or too slow by now.
func (x *state) hosted(g int, w serving.WorkerID) int {
	i, ok := x.running[w]
	if !ok {
		return idle
	}
	v, ok := capacity.HostedVariant(i)
	if !ok {
		return idle
	}
	return slices.IndexFunc(x.options, func(o option) bool { return o.group == g && o.variant == v })
}

// move turns a worker from hosting one option to hosting another of the same group.
func (x *state) move(from, to int) {
	x.add(from, -1)
	x.add(to, 1)
	g := x.groupOf(from, to)
	if from == idle {
		x.idle[g]--
	}
	if to == idle {
		x.idle[g]++
	}
}

func (x *state) groupOf(from, to int) int {
	if from == idle {
		return x.options[to].group
	}
	return x.options[from].group
}

// add changes how many workers host an option. What a stage carries is summed anew, so that a state does not depend on
// the way that led to it.
func (x *state) add(k, n int) {
	if k == idle {
		return
	}
	x.counts[k] += n
	st := &x.stages[x.options[k].stage]
	st.workers, st.rate, st.weighted = 0, 0, 0
	for _, j := range st.options {
		o := &x.options[j]
		st.workers += x.counts[j]
		st.rate += float64(x.counts[j]) * o.rate
		st.weighted += float64(x.counts[j]) * o.rate * o.accuracy
	}
}

// carries tells whether a stage carries the given multiple of its need.
func (st *stage) carries(able, multiple float64) bool { return able >= st.need*multiple*(1-tolerance) }

// value is the mean value of a stage's answers while its instances share the load in proportion to what they carry.
func (st *stage) accuracy() float64 {
	if st.rate <= 0 {
		return 0
	}
	return st.weighted / st.rate
}

// after is what a stage would carry, and its mean value, with one worker less that hosts from and one more that hosts
// to; free leaves out either. Options of other stages do not count.
func (x *state) afterMove(s serving.StageID, from, to int) (able, value float64) {
	st := &x.stages[s]
	able, worth := st.rate, st.weighted
	if from != idle && x.options[from].stage == s {
		able -= x.options[from].rate
		worth -= x.options[from].rate * x.options[from].accuracy
	}
	if to != idle && x.options[to].stage == s {
		able += x.options[to].rate
		worth += x.options[to].rate * x.options[to].accuracy
	}
	if able <= 0 {
		return 0, 0
	}
	return able, worth / able
}
