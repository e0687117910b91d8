package priced

import (
	"math"
	"strconv"

	"github.com/sluice-serving/sluice/internal/algo/dag"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
)

// app is what the rule knows of an app.
type app struct {
	id     serving.AppID
	weight float64
	slo    float64 // s
	graph  *pipeline.Graph
	items  []float64 // by position: that reach a stage, for each item of a query
	bonus  float64   // part of the weight by which an answer counts more, so that it does however little accurate
}

// stage is what the rule knows of a stage, and what waits there.
type stage struct {
	id       serving.StageID
	app      int
	position int     // in its app
	groups   []int32 // that can serve it
	pool     int32   // the same for stages that the same groups serve
	slots    int     // batches that can run at once on machines of groups
	budget   float64 // s of the objective that the stage may take for batches to fill and run
	within   float64 // s of it that the batch of a task that is left for later may take, with those in which it fills
	remains  float64 // s of the objective that are left when a task usually comes
	longest  float64 // s of the objective that are left for it if the other stages are as fast as can be
	least    float64 // s that its fastest option takes for one item
	value    float64 // of a task that is in time at best accuracy
	right    float64 // the part of it for being right: the query's weight, over its tasks here
	emphasis float64 // by which its accuracy counts more while its app misses its accuracy target; 1 otherwise
	mostLoss float64 // part of the best accuracy that its least accurate option falls short of it
	chooses  bool    // its options differ in accuracy
	reach    float64 // share of the queries that have items here
	tasks    float64 // of a query that has any
	siblings int     // of its tasks that are taken to run in one batch while machine time is scarce
	next     []following
	joins    float64
	alone    bool // it is the only stage of its app
	overlaps bool // batches may begin beside those of other stages

	kinds []int32  // by group: the same number for those whose machines are alike for this stage
	alike int      // how many kinds there are
	set   []uint64 // a bit for each of groups

	classes  []class
	times    []float64 // by class, then by group: s that a task of it takes there, infinite where it cannot run
	until    []float64 // by class: s until another machine is free than the one that is given a batch now
	rate     float64   // items/s that arrive
	waits    float64   // items that wait
	tables   []table   // by class
	firsts   []first   // variants whose answers may be improved
	seconds  []second  // tasks with an answer, by serving.Hint less 1
	firstsAt serving.Time
	floor    float64   // the accuracy that queries want, of those that may have a first answer below it; 0 for none
	wants    float64   // the share of queries that do
	shorts   int       // from where on seconds are kinds of tasks whose answer fell short; 0 for none
	after    []float64 // by slack left when the stage is done: what the task then brings at best accuracy
	delta    float64   // s that a task waits here, beyond the batch before it
	behind   float64   // s that a task left behind waits here, beyond the next free machine

	collection uint64 // the number of the last time that its tasks were collected; 0 to collect them anew
	mixed      bool   // tasks differ in more than their deadlines
	long       bool   // some of them have lengths that count
	placed     bool   // some of them are to be served by a certain group
	row        row
	waiting    []place       // where they do not: those that wait and can be in time
	lost       [2]leftBehind // from the first that are in time on, and the last that wait
	single     int           // the class of tasks with one item
	differing  []task        // where tasks are mixed: those that wait and can be in time
	candidates []candidate
}

// following is a stage that another one feeds.
type following struct {
	stage int     // StageID
	share float64 // of its cost that a task of the stage before bears
	items float64 // that it gets for each item of the stage before
}

// class is tasks of about the same size.
type class struct {
	upTo  int     // items
	most  int     // items of the largest task that is expected
	mean  float64 // items
	share float64 // of the tasks that arrive
	rate  float64 // tasks/s that enter the app here
	waits float64 // tasks that wait here
	takes float64 // machines that it keeps busy, at the least
	needs float64 // the same together with the classes that are as urgent on the same machines

	least      float64 // s that a task takes on the fastest machines
	everywhere bool    // every machine that serves its stage is fast enough
}

// task is one of a stage whose tasks differ in more than their deadlines.
type task struct {
	place
	items  int
	length int32   // 0 where lengths do not count
	second int32   // of stage.seconds; -1 for one without an answer
	left   float64 // s until its stage must end at the latest
	due    float64 // s until its query is late
	class  int     // of its size
	floor  float64 // the accuracy that answers must have, where variants below it may answer first; 0 elsewhere
	cold   bool    // it waits for a machine to load: it wants to begin, and is worth nothing if it is left
	// group is to serve it, or anywhere; begins tells that a slot of it is free, and tight how much time is left on the
	// slowest machines, in s (lookahead.go).
	group  int32
	begins bool
	tight  float64
}

const (
	// slackShare is the part of a later stage's time that a task is taken to wait there.
	slackShare = 0.25
	// A task left behind is taken to wait beyond the next free machine: for behindSlots over the slots, in parts of its
	// stage's time, within these bounds.
	leastBehind, mostBehind, behindSlots = 0.04, 0.2, 3.0
	// lent says which part of what other stages can spare of the objective a later batch takes: all but so much over
	// the slots. With few of them a task waits for one that other tasks want as well, and has no time to lend.
	lent = 2.0
	// siblingsShare is the part of an objective that the batches of all of a query's siblings may take on the longest
	// path.
	siblingsShare = 0.6
	// served is what an answer in time is worth beside its accuracy while all objectives are kept (pressure.go).
	served = 0.25
	// steps divide an objective where worth is tabulated.
	steps = 128
	// mostTasks bounds the tasks of a stage that are looked at, by the order of the queue. mostMixed is that for tasks
	// that differ.
	mostTasks, mostMixed = 256, 128
)

// buildStages takes up the apps, and which groups serve which stage.
func (r *Rule) buildStages(spec *serving.Spec) {
	if len(r.stages) != len(spec.Stages) || len(r.apps) != len(spec.Apps) {
		r.stages, r.apps = make([]stage, len(spec.Stages)), make([]app, len(spec.Apps))
		for a := range spec.Apps {
			x := &spec.Apps[a]
			r.apps[a] = app{
				id: serving.AppID(a), weight: max(x.Weight, 1e-6), graph: pipeline.New(spec, serving.AppID(a)),
			}
			r.apps[a].items = r.apps[a].graph.MeanItems()
		}
		for s := range spec.Stages {
			r.stages[s] = stage{
				id: serving.StageID(s), app: int(spec.Stages[s].App),
				joins: float64(max(spec.Stages[s].Joins, 1)),
			}
		}
	}
	for a := range spec.Apps { // objectives may change while the tables stay
		x := &spec.Apps[a]
		r.apps[a].slo = max((x.SLO.Latency - x.Slack).Seconds(), 1e-6)
	}
	pools := make(map[string]int32)
	var key []byte
	for s := range r.stages {
		x := &r.stages[s]
		x.groups, x.slots, key = x.groups[:0], 0, key[:0]
		for g := range r.machines.groups {
			if len(r.machines.groups[g].holding(x)) > 0 {
				x.groups = append(x.groups, int32(g))
				x.slots += r.machines.groups[g].all()
				key = strconv.AppendInt(append(key, ' '), int64(g), 10)
			}
		}
		if _, ok := pools[string(key)]; !ok {
			pools[string(key)] = int32(len(pools))
		}
		x.pool = pools[string(key)]
		x.findKinds(r.machines.groups)
		if !r.NoSeconds {
			x.findSeconds(spec)
		}
		r.findLosses(x)
		if len(x.candidates) < len(r.machines.groups) {
			x.candidates = make([]candidate, len(r.machines.groups))
		}
		x.forget()
		x.row.forget() // a task that could not be in time may be so on new machines
	}
	for a := range r.apps {
		r.buildGraph(spec, &r.apps[a])
	}
	for g := range r.machines.groups {
		x := &r.machines.groups[g]
		x.least = math.Inf(1)
		for k := range x.options {
			o := &x.options[k]
			x.least = min(x.least, tieBreak*r.stages[o.stage].value/o.seconds[1])
		}
		x.price = max(x.price, x.least)
	}
}

// tieBreak is the price of a machine that has time to spare, relative to that at which its slowest single item would be
// worth nothing. With it fuller batches win over smaller ones that bring as much for each query. The slowest counts:
// overlapping a stage that takes microseconds an accurate variant must not look dear.
const tieBreak = 1e-4

// scarce reports whether the time of a group's machines is short.
func (x *group) scarce() bool { return x.price > x.least }

// buildGraph divides an app's objective over its stages, in proportion to what their variants take for one item, and
// lists what follows each.
func (r *Rule) buildGraph(spec *serving.Spec, a *app) {
	n := a.graph.Len()
	needs, least := make([]float64, n), make([]float64, n)
	for at := range n {
		x := &r.stages[a.graph.Stage(at)]
		x.position, x.alone = at, n == 1
		x.setTasks(spec, a)
		x.least, needs[at] = r.fastest(x, 1), r.typicalTime(x)
		least[at] = x.least
	}
	before, behind := dag.Around(a.graph.Following(), least)
	for at := range n {
		x := &r.stages[a.graph.Stage(at)]
		x.longest = a.slo - before[at] - behind[at]
	}
	r.setSiblings(a)
	before, behind = dag.Around(a.graph.Following(), needs)
	for at := range n {
		x := &r.stages[a.graph.Stage(at)]
		all := max(before[at]+needs[at]+behind[at], 1e-9)
		x.budget, x.remains = a.slo*needs[at]/all, a.slo*(1-before[at]/all)
		slots := float64(x.slots)
		x.within = x.budget + max(1-lent/slots, 0)*(x.longest-x.budget)
		x.delta = slackShare * x.budget
		x.behind = x.budget * min(mostBehind, max(leastBehind, behindSlots/slots))
	}
	for at := n - 1; at >= 0; at-- {
		x := &r.stages[a.graph.Stage(at)]
		x.next = x.next[:0]
		for _, e := range a.graph.Next(at) {
			to := &r.stages[a.graph.Stage(e.To)]
			x.next = append(x.next, following{
				stage: int(to.id), items: perItem(&e, a.items[at]) / to.joins,
				share: to.reach * to.tasks / (x.reach * x.tasks) / to.joins,
			})
		}
	}
}

// perItem is the items that are expected along an edge for each that is served, of so many of a query.
func perItem(e *pipeline.Edge, of float64) float64 {
	if !e.Collects || of <= 0 {
		return e.FanOut
	}
	return e.Delivers(of) / of
}

// setSiblings sets how many tasks of a query are taken to run in one batch at each stage while machine time is scarce:
// all, or the largest part of all with which the query can still be in time.
func (r *Rule) setSiblings(a *app) {
	n := a.graph.Len()
	takes := make([]float64, n)
	for _, part := range [...]float64{1, 0.7, 0.5, 0.35, 0.25, 0} {
		for at := range n {
			x := &r.stages[a.graph.Stage(at)]
			x.siblings = max(int(math.Round(part*x.tasks)), 1)
			takes[at] = r.fastest(x, x.siblings)
		}
		before, behind := dag.Around(a.graph.Following(), takes)
		longest := 0.0
		for at := range n {
			longest = max(longest, before[at]+takes[at]+behind[at])
		}
		if longest <= siblingsShare*a.slo {
			return
		}
	}
}

// fastest returns what the fastest option of a stage takes for some items; 0 for a stage that nothing serves.
func (r *Rule) fastest(x *stage, items int) float64 {
	least := math.Inf(1)
	for _, g := range x.groups {
		for _, o := range r.machines.groups[g].serving(x) {
			least = min(least, o.seconds[min(items, o.limit)])
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// setTasks derives how many tasks a query has at a stage, from the mean sizes that are expected. At the first stage it
// is one. At later ones the engine makes a task of each item, and larger ones beyond so many.
func (x *stage) setTasks(spec *serving.Spec, a *app) {
	mean := spec.Apps[a.id].Mix.Mean() * a.items[x.position]
	x.reach, x.tasks = 1, 1
	if x.position > 0 {
		if spec.Stages[x.id].EachQuery {
			mean = min(mean, 1)
		}
		x.reach = max(min(mean, 1), 1e-6)
		x.tasks = max(mean/max(math.Ceil(mean/pipeline.MostTasks), 1), 1)
	}
	x.right = a.weight / x.tasks
	x.emphasis, x.value = 1, (1+served)*x.right
}

// typicalTime returns the mean over a stage's variants of what they take for one item, each on the machines that are
// fastest for it; 0 for a stage that nothing serves.
func (r *Rule) typicalTime(x *stage) (mean float64) {
	seen := make(map[serving.VariantID]float64)
	for _, g := range x.groups {
		for _, o := range r.machines.groups[g].serving(x) {
			if t, ok := seen[o.variant]; !ok || o.seconds[1] < t {
				seen[o.variant] = o.seconds[1]
			}
		}
	}
	n := max(float64(len(seen)), 1)
	for _, g := range x.groups { // in a fixed order, so that the sum has the same bits in every run
		for _, o := range r.machines.groups[g].serving(x) {
			mean += seen[o.variant]
			delete(seen, o.variant)
		}
	}
	return mean / n
}

// classOf returns the index of the class of a task's size.
func (x *stage) classOf(items int) int {
	for c := range x.classes {
		if items <= x.classes[c].upTo {
			return c
		}
	}
	return len(x.classes) - 1
}

// forget makes a stage's tasks be collected anew.
func (x *stage) forget() { x.collection = 0 }
