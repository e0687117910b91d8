package infaas

import (
	"slices"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// state is a placement that actions change. It holds counts: it does not matter which of several workers of a type
// hosts a variant.
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

// group is the workers of one device type that are up.
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
	accuracy float64 // normalised by the stage's most accurate variant
}

// stage is the need of a stage and the workers that serve it.
type stage struct {
	capacity.StageDemand
	need     float64 // items/s, head-room included
	weight   float64 // of its mean accuracy among all stages': importance times queries/s
	options  []int   // by falling accuracy, then rate
	workers  int     // number of its workers
	rate     float64 // items/s that they carry
	weighted float64 // sum of rate times accuracy over them
}

// idle stands for no option in an action: a worker that hosts nothing before or after it.
const idle = -1

// tolerance is the relative difference below which two numbers are equal.
const tolerance = 1e-9

// read turns a request into the placement that runs. It fails when nothing can serve some stage.
func (p *Planner) read(r plan.Request) (*state, error) {
	x := &state{o: p.Options.filled(), spec: r.Spec, running: capacity.RunningByWorker(r.Snapshot)}
	down, broken := capacity.Unusable(r.Spec, r.Snapshot)
	x.group(down)
	for s, asked := range capacity.StageDemands(r.Spec, r.Rates) {
		if err := x.addStage(r.Believed(p.Profile), serving.StageID(s), asked, broken); err != nil {
			return nil, err
		}
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

// group makes the groups of the workers that are up, all idle.
func (x *state) group(down []bool) {
	for w, y := range x.spec.Workers {
		if down[w] {
			continue
		}
		at := slices.IndexFunc(x.groups, func(g group) bool { return g.device == y.DeviceType })
		if at < 0 {
			at = len(x.groups)
			x.groups = append(x.groups, group{device: y.DeviceType})
			x.idle = append(x.idle, 0)
		}
		x.groups[at].workers = append(x.groups[at].workers, serving.WorkerID(w))
		x.idle[at]++
	}
}

// addStage adds a stage and the options for it, in the order of groups and variants.
func (x *state) addStage(believed profile.Profile, s serving.StageID, asked capacity.StageDemand, broken []bool) error {
	rule := capacity.BatchRule{Fraction: x.o.Fraction, Batches: x.o.Batches}
	app := &x.spec.Apps[asked.App]
	st := stage{StageDemand: asked, need: asked.Rate * x.o.Headroom}
	if asked.FanOut > 0 {
		st.weight = app.Weight * asked.Rate / asked.FanOut / float64(len(app.Stages))
	}
	devices := make([]serving.DeviceTypeID, len(x.groups))
	for g := range x.groups {
		devices[g] = x.groups[g].device
		for _, v := range x.spec.Stages[s].Variants {
			if broken[v] {
				continue
			}
			limit, rate := rule.Capacity(believed, x.spec, v, devices[g], asked.Budget)
			if limit == 0 {
				continue
			}
			st.options = append(st.options, len(x.options))
			x.options = append(x.options, option{g, s, v, limit, rate, asked.NormalizedAccuracy(&x.spec.Variants[v])})
		}
	}
	if len(st.options) == 0 {
		return capacity.Unservable(believed, x.spec, s, asked, devices, broken)
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
	return nil
}

// hosted returns the option that a worker of group g runs. It returns idle when it runs none, or one that is broken or
// too slow by now.
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

// add changes how many workers host an option. It recomputes the sums of the stage, so that rounding errors do not
// depend on the order of actions.
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

// carries reports whether a rate in items/s is at least the given multiple of the stage's need.
func (st *stage) carries(rate, multiple float64) bool { return rate >= st.need*multiple*(1-tolerance) }

// accuracy returns the mean normalised accuracy of a stage's answers while its instances share the load in proportion
// to what they carry.
func (st *stage) accuracy() float64 {
	if st.rate <= 0 {
		return 0
	}
	return st.weighted / st.rate
}

// afterMove returns what stage s would carry, and its mean accuracy, after a worker moves from one option to another;
// either may be idle. Options of other stages do not count.
func (x *state) afterMove(s serving.StageID, from, to int) (rate, accuracy float64) {
	st := &x.stages[s]
	rate, weighted := st.rate, st.weighted
	if from != idle && x.options[from].stage == s {
		rate -= x.options[from].rate
		weighted -= x.options[from].rate * x.options[from].accuracy
	}
	if to != idle && x.options[to].stage == s {
		rate += x.options[to].rate
		weighted += x.options[to].rate * x.options[to].accuracy
	}
	if rate <= 0 {
		return 0, 0
	}
	return rate, weighted / rate
}
