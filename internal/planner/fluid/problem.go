package fluid

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/bound"
	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// problem is a request in the terms of the program.
type problem struct {
	r        *plan.Request
	spec     *serving.Spec
	o        Options
	believed profile.Profile
	measured profile.MeasuredFunc // nil where it is not known what was measured
	kinds    []kind
	apps     []app      // by AppID
	stages   []stage    // by StageID
	unsure   [][]unsure // by StageID
	worth    float64    // sum of weight times rate over all apps, above 0
	broken   []bool     // by VariantID: failed to load
}

// kind is the usable machines of a device type: a group of the program.
type kind struct {
	device  serving.DeviceTypeID
	workers []serving.WorkerID
	most    int     // machines that may be used
	price   float64 // $/h; 0 where machines are owned
	rented  bool
	memory  int64 // bytes; MaxInt64 where it is not known
	options []option
}

// option is a variant that a machine of a kind can hold.
type option struct {
	variant serving.VariantID
	stage   serving.StageID
	limit   int       // items of the largest batch
	slots   int       // batches at once that carry most
	need    int64     // bytes
	loss    float64   // of accuracy, relative to the stage's best
	rates   []float64 // by class of the app, items/s of a machine; nil where it is below the floor, or serves none
	seconds []float64 // by index in problem.unsure of its stage: second answers/s of a machine
	load    time.Duration
	start   time.Duration // part of load: of a machine that has to be had first
}

// stage is what reaches a stage of an app.
type stage struct {
	app     serving.AppID
	fan     float64       // items for each item of a query
	least   float64       // loss of accuracy with second answers, as of option; at most 0
	within  time.Duration // its part of the objective
	longest time.Duration // of a run, if the other stages are as fast as can be
}

// app is a demand.
type app struct {
	rate    float64 // queries/s, at least capacity.MinRate
	weight  float64
	allowed float64 // loss of accuracy that the target allows; 1 without a target
	most    int     // instances of each stage; MaxInt where it is not limited
	least   int
	classes []class
	// lost is the part of the app's queries that are too large for any machine. They are in no other field.
	lost   float64
	closed bool
}

// class is queries of an app of about the same size.
type class struct {
	share float64 // of the app's queries
	size  int     // items of the largest query
	items float64 // mean of a query
}

// read makes the problem of a request. It fails when an app can be served nowhere.
func (p *Planner) read(r *plan.Request) (*problem, error) {
	down, broken := capacity.Unusable(r.Spec, r.Snapshot)
	m := p.problem(r, nil)
	m.reachTargets()
	return m, m.servable(r.Snapshot != nil || slices.Contains(down, true) || slices.Contains(broken, true))
}

// problem makes the problem of a request, whether all apps can be served or not. machines is how many of each device
// type may be used; nil for those of the request.
func (p *Planner) problem(r *plan.Request, machines func(serving.DeviceTypeID) int) *problem {
	m := &problem{
		r: r, spec: r.Spec, o: p.Options, believed: r.Believed(p.Profile), measured: profile.MeasuredPoints(p.Profile),
	}
	down, broken := capacity.Unusable(r.Spec, r.Snapshot)
	m.broken = broken
	for d, workers := range capacity.UsableWorkers(r.Spec, down) {
		if len(workers) == 0 {
			continue
		}
		t := &r.Spec.DeviceTypes[d]
		k := kind{
			device: serving.DeviceTypeID(d), workers: workers, most: len(workers), memory: t.MemoryBytes,
			rented: t.Tenure == serving.Rented,
		}
		if k.memory <= 0 {
			k.memory = math.MaxInt64
		}
		if k.rented {
			k.price = r.Price(k.device)
			if t.MaxMachines > 0 {
				k.most = min(k.most, t.MaxMachines)
			}
		}
		if machines != nil {
			k.most = machines(k.device)
		}
		m.kinds = append(m.kinds, k)
	}
	m.readApps()
	m.readStages()
	m.findUnsure()
	m.findLeasts()
	m.cutClasses()
	for k := range m.kinds {
		m.addOptions(&m.kinds[k])
	}
	for a := range m.apps {
		m.mergeClasses(serving.AppID(a))
	}
	m.leaveLost()
	return m
}

// servable fails when an app has a stage that nothing serves. In a run that goes on, and while machines are down or
// variants do not load, it fails only when that holds for all apps: the others go on.
func (m *problem) servable(disturbed bool) error {
	var first error
	open := false
	for a := range m.apps {
		if m.apps[a].closed {
			continue
		}
		open = true
		err := m.unserved(serving.AppID(a))
		if err == nil && disturbed {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	if !open {
		return nil
	}
	return first
}

// unserved tells why nothing serves a stage of an app; nil where each has a variant.
func (m *problem) unserved(a serving.AppID) error {
	var devices []serving.DeviceTypeID
	for k := range m.kinds {
		devices = append(devices, m.kinds[k].device)
	}
	for _, s := range m.spec.Apps[a].Stages {
		if !m.serves(s) {
			ask := capacity.Asked{Stage: s, Budget: m.stages[s].longest, Fraction: 1, Items: m.itemsOf(s, 0)}
			return capacity.Unserved(m.believed, m.spec, ask, devices, m.broken)
		}
	}
	return nil
}

// serves tells whether any machine can serve a stage.
func (m *problem) serves(s serving.StageID) bool {
	for k := range m.kinds {
		for j := range m.kinds[k].options {
			if o := &m.kinds[k].options[j]; o.stage == s && o.rates != nil {
				return true
			}
		}
	}
	return false
}

// longestRun is the part of a stage's time that a batch of several queries may take: the rest is for the queries that
// have just missed the one before.
const longestRun = 0.75

// longestRun is that part, or all of a stage's time for a rule that knows what time queries have left.
func (m *problem) longestRun() float64 {
	if m.o.Pooled {
		return 1
	}
	return longestRun
}

// addOptions lists the variants that a kind of machine can hold, in the order of the stages.
func (m *problem) addOptions(k *kind) {
	for s := range m.spec.Stages {
		if m.apps[m.stages[s].app].closed {
			continue
		}
		for _, v := range m.spec.Stages[s].Variants {
			if o, ok := m.option(k, v); ok && (m.prompt(k, v) || !m.anyPrompt(k, m.spec.Stages[s].Variants)) {
				k.options = append(k.options, o)
			}
		}
	}
}

// prompt tells whether a variant answers a single item within its stage's part of the objective. Variants that do not
// take time from the stages behind. A machine holds them only where it has no other of the stage.
func (m *problem) prompt(k *kind, v serving.VariantID) bool {
	x := &m.spec.Variants[v]
	within := m.stages[x.Stage].within
	if m.o.Pooled {
		within = m.stages[x.Stage].longest
	}
	return !x.Retired && !m.broken[v] && m.believed.Latency(v, k.device, 1, 1) <= within
}

// anyPrompt tells whether any of some variants is prompt, of those that any query may use.
func (m *problem) anyPrompt(k *kind, variants []serving.VariantID) bool {
	return slices.ContainsFunc(variants, func(v serving.VariantID) bool {
		return !m.spec.BelowFloor(v) && m.spec.Variants[v].MemoryBytes <= k.memory && m.prompt(k, v)
	})
}

// option describes a variant on a kind of machine; ok is false where it does not fit or is too slow.
func (m *problem) option(k *kind, v serving.VariantID) (o option, ok bool) {
	x := &m.spec.Variants[v]
	if x.Retired || m.broken[v] || x.MemoryBytes > k.memory {
		return o, false
	}
	st := &m.stages[x.Stage]
	o = option{variant: v, stage: x.Stage, load: m.believed.Load(v, k.device),
		start: profile.Start(m.believed, k.device)}
	run := time.Duration(m.longestRun() * float64(st.longest))
	o.slots = capacity.PayingSlots(m.measured, m.believed, m.spec, v, k.device, run)
	o.limit = profile.BatchLimit(m.believed, m.spec, v, k.device, o.slots, run)
	alone := profile.BatchLimit(m.believed, m.spec, v, k.device, 1, st.longest)
	o.limit = max(o.limit, min(m.largest(x.Stage), alone))
	if m.o.Pooled && x.ItemBytes == 0 && m.spec.Apps[st.app].SLO.Proposed {
		// A time that nobody asked for refuses no query, and the rule knows how long batches may be.
		o.limit = x.MaxBatch
	}
	if x.ItemBytes > 0 {
		o.limit = min(o.limit, int((k.memory-x.MemoryBytes)/x.ItemBytes))
	}
	if o.limit < 1 {
		return o, false
	}
	o.need = x.MemoryBytes + int64(o.limit)*x.ItemBytes
	if best := m.spec.BestOfStage(x.Stage); best > 0 {
		o.loss = 1 - x.Accuracy/best
	}
	if m.spec.BelowFloor(v) {
		return o, true
	}
	any := false
	for c := range m.apps[st.app].classes {
		items := m.itemsOf(x.Stage, c)
		if x.Stage != m.spec.Source(st.app) {
			items = min(items, o.limit) // a later stage gets what is more in parts
		}
		rate := m.rate(k, &o, items)
		o.rates = append(o.rates, rate)
		any = any || rate > 0
	}
	m.findSecondRates(k, &o)
	if any {
		return o, true
	}
	o.rates = nil // it serves no class, but some queries of one, or second answers
	return o, slices.Max(append(o.seconds, 0)) > 0 || m.rate(k, &o, m.smallestOf(x.Stage)) > 0
}

// smallestOf is how many items the smallest query has at a stage.
func (m *problem) smallestOf(s serving.StageID) int {
	items, _ := m.spec.Apps[m.stages[s].app].Mix.Class(0)
	return max(int(math.Round(float64(items)*m.stages[s].fan)), 1)
}

// largest is the most items of a query at a stage.
func (m *problem) largest(s serving.StageID) (most int) {
	for c := range m.apps[m.stages[s].app].classes {
		most = max(most, m.itemsOf(s, c))
	}
	return most
}

// itemsOf is how many items the largest query of a class has at a stage, at least 1.
func (m *problem) itemsOf(s serving.StageID, c int) int {
	return max(int(math.Round(float64(m.apps[m.stages[s].app].classes[c].size)*m.stages[s].fan)), 1)
}

// rate is the most items/s that a machine gives a class of queries with items at a stage, in batches that come together
// within the objective.
func (m *problem) rate(k *kind, o *option, items int) float64 {
	if items > o.limit {
		return 0
	}
	st := &m.stages[o.stage]
	if best := m.rateWithin(k, o, items, st.within); best > 0 {
		return best
	}
	// A query that is in time only if the other stages are as fast as can be.
	w := bound.Model{
		Spec: m.spec,
		Time: func(v serving.VariantID, d serving.DeviceTypeID, b, n int) (time.Duration, bool) {
			l := m.believed.Latency(v, d, b, n)
			return l, b == items && n == 1 && l <= st.longest
		},
		Levels: func(serving.VariantID, serving.DeviceTypeID) int { return o.slots },
	}
	return w.Rate(o.variant, k.device, items, st.longest)
}

// rateWithin is rate where so much time is left.
func (m *problem) rateWithin(k *kind, o *option, items int, left time.Duration) float64 {
	arriving := m.itemRate(o.stage)
	long := time.Duration(m.longestRun() * float64(left))
	w := bound.Model{
		Spec: m.spec,
		Time: func(v serving.VariantID, d serving.DeviceTypeID, b, n int) (time.Duration, bool) {
			l := m.believed.Latency(v, d, b, n)
			return l, l < profile.Unknown && b <= o.limit
		},
		Chance: func(v serving.VariantID, d serving.DeviceTypeID, b, n int, within time.Duration) float64 {
			l := m.believed.Latency(v, d, b, n)
			alone := b == items && n == 1 && l <= within
			gathered := l <= long && float64(b) <= gathering*arriving*(within-l).Seconds()
			if alone || gathered {
				return 1
			}
			return 0
		},
		Levels: func(serving.VariantID, serving.DeviceTypeID) int { return o.slots },
	}
	return w.Rate(o.variant, k.device, items, left)
}

// gathering is the part of the time that a batch leaves in which its queries have to come together.
const gathering = 0.5

// itemRate is the items/s that reach a stage.
func (m *problem) itemRate(s serving.StageID) float64 {
	a := m.stages[s].app
	return m.apps[a].rate * m.meanItems(a) * m.stages[s].fan
}

// meanItems is the mean of an app's queries.
func (m *problem) meanItems(a serving.AppID) (mean float64) {
	for _, c := range m.apps[a].classes {
		mean += c.share * c.items
	}
	return mean
}
