package telemetry

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gonum.org/v1/gonum/mathext"

	"github.com/sluice-serving/sluice/algo/student"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// PromiseChange tells that what an app's policies promise and what happens differ more than chance explains, or do no
// longer.
type PromiseChange struct {
	App  serving.AppID
	What string // "violations" or "accuracy"
	// Broken is false when the promise is kept again.
	Broken             bool
	Promised, Observed float64 // means over the window: share of violations, or accuracy
	Queries            int     // of the window that count
}

// What can depart.
const (
	promisedViolations = "violations"
	promisedAccuracy   = "accuracy"
)

// The window in which reality is held against promises is cut into blocks, long enough for what one burst leads to to
// end in the block in which it began or the next, so that blocks tell of each other hardly anything.
const (
	windowBlocks       = 30
	minBlock           = 2 * time.Second // of a block
	objectivesPerBlock = 5               // that a block lasts at least
	minBlocks          = 10              // with queries, for a verdict
	minQueries         = 100
	// errorProbability is how likely each test is to call a promise broken that is just kept.
	errorProbability = 0.001
	// What is too little to matter: this part of the violations that the objective allows, this much accuracy. Policies
	// follow a load that is measured over half a second, and promise for one that is known.
	toleratedViolations = 0.1
	toleratedAccuracy   = 0.005
)

// promises holds what policies promise against what happens. It follows the plan in force and the load as batchers do.
type promises struct {
	spec    *serving.Spec
	rates   *monitor.Rates
	request uint64 // Seq of the last plan asked for: an older plan is not taken
	loading map[loading]bool
	apps    []appPromise
	app     func(*serving.App) appPromise // makes one
	notify  func(PromiseChange)
}

type loading struct {
	instance serving.InstanceID
	variant  serving.VariantID
}

// appPromise is one app's.
type appPromise struct {
	promise *plan.Promised // of the plan in force; nil without policies
	loading int            // variants wanted that are not there yet: no policy holds before
	length  serving.Time
	ring    [windowBlocks]block
	newest  int64 // number of the block being filled
	broken  map[string]bool

	rate, accuracy, violation        prometheus.Gauge
	queries, violations              prometheus.Counter
	accuracySum, accuracyCount       prometheus.Counter
	accuracyBroken, violationsBroken prometheus.Gauge
}

// block is what happened in a block of the window.
type block struct {
	queries, violations, promised      float64 // that count; of those violations, and how many were promised
	served, accuracy, promisedAccuracy float64 // sums over served queries
}

func newPromises(r *prometheus.Registry, spec *serving.Spec, warn func(PromiseChange)) *promises {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		r.MustRegister(g)
		return g
	}
	counter := func(name, help string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"app"})
		r.MustRegister(c)
		return c
	}
	rate := gauge("sluice_policy_rate", "Arrival rate in queries/s that the policy in force was made for.", "app")
	accuracy := gauge("sluice_policy_expected_accuracy", "Accuracy that the policy in force promises.", "app")
	violation := gauge("sluice_policy_expected_violation_ratio",
		"Share of violations that the policy in force promises not to exceed; NaN where it promises none.", "app")
	queries := counter("sluice_promised_queries_total",
		"Queries that count for the objective and ended while a policy with a promise of violations was in force.")
	violations := counter("sluice_promised_violations_total",
		"How many of them were promised to violate the objective at most.")
	accuracySum := counter("sluice_promised_accuracy_sum",
		"Sum of the promised accuracy over queries answered while a policy was in force.")
	accuracyCount := counter("sluice_promised_accuracy_count", "Queries answered while a policy was in force.")
	broken := gauge("sluice_promise_broken",
		"1 while observations of the last minute contradict what policies promise.", "app", "promise")
	p := &promises{rates: monitor.NewRates(len(spec.Apps)), loading: make(map[loading]bool), notify: warn}
	p.app = func(x *serving.App) appPromise {
		return appPromise{
			length: serving.Time(max(minBlock, objectivesPerBlock*x.SLO.Latency)), broken: make(map[string]bool),
			rate: rate.WithLabelValues(x.Name), accuracy: accuracy.WithLabelValues(x.Name),
			violation: violation.WithLabelValues(x.Name),
			queries:   queries.WithLabelValues(x.Name), violations: violations.WithLabelValues(x.Name),
			accuracySum: accuracySum.WithLabelValues(x.Name), accuracyCount: accuracyCount.WithLabelValues(x.Name),
			accuracyBroken:   broken.WithLabelValues(x.Name, promisedAccuracy),
			violationsBroken: broken.WithLabelValues(x.Name, promisedViolations),
		}
	}
	p.grow(spec)
	return p
}

// grow makes room for the apps that a larger world adds.
func (p *promises) grow(spec *serving.Spec) {
	p.spec = spec
	p.rates.Grow(len(spec.Apps))
	for a := len(p.apps); a < len(spec.Apps); a++ {
		p.apps = append(p.apps, p.app(&spec.Apps[a]))
	}
}

func (p *promises) observe(now serving.Time, in []engine.Input, out []engine.Decision) {
	seen := false
	for k := range in {
		switch x := &in[k]; x.Kind {
		case engine.QueryArrived:
			if a := x.Query.App; a >= 0 && int(a) < len(p.apps) {
				p.rates.Add(now, a)
				seen = true
			}
		case engine.PlanReady:
			if x.Plan.Snapshot >= p.request {
				p.adopt(x.Plan)
				seen = true
			}
		case engine.InstanceChanged:
			switch x.Change {
			case engine.VariantReady, engine.LoadFailed:
				p.setLoading(x.Instance, x.Variant, false)
			case engine.Lost:
				p.dropInstance(x.Instance)
			}
		}
	}
	for k := range out {
		switch d := &out[k]; d.Kind {
		case engine.LaunchInstance:
			for _, v := range d.Launch.Variants {
				p.setLoading(d.Instance, v, true)
			}
		case engine.LoadVariant:
			p.setLoading(d.Instance, d.Variant, true)
		case engine.UnloadVariant:
			p.setLoading(d.Instance, d.Variant, false)
		case engine.StopInstance:
			p.dropInstance(d.Instance)
		case engine.RequestPlan:
			p.request = d.Snapshot.Seq
		}
	}
	for a := range p.apps {
		x := &p.apps[a]
		if x.promise == nil {
			continue
		}
		if seen {
			if promise, rate, ok := p.inForce(now, serving.AppID(a)); ok {
				x.rate.Set(rate)
				x.accuracy.Set(promise.Accuracy)
				if promise.Violation < 0 {
					promise.Violation = math.NaN()
				}
				x.violation.Set(promise.Violation)
			}
		}
		p.advance(now, serving.AppID(a))
	}
}

// adopt takes the promises of a plan that comes into force. That about one stage of several says nothing of the app.
func (p *promises) adopt(made *plan.Plan) {
	for a := range p.apps {
		p.apps[a].promise = nil
		if stages := p.spec.Apps[a].Stages; len(stages) == 1 {
			p.apps[a].promise = made.Promised(p.spec, stages[0])
		}
	}
}

// setLoading notes that a variant is being loaded, or no longer.
func (p *promises) setLoading(i serving.InstanceID, v serving.VariantID, is bool) {
	k := loading{i, v}
	if v < 0 || int(v) >= len(p.spec.Variants) || p.loading[k] == is {
		return
	}
	x := &p.apps[p.spec.Stages[p.spec.Variants[v].Stage].App]
	if is {
		p.loading[k] = true
		x.loading++
	} else {
		delete(p.loading, k)
		x.loading--
	}
}

func (p *promises) dropInstance(i serving.InstanceID) {
	for k := range p.loading {
		if k.instance == i {
			p.setLoading(i, k.variant, false)
		}
	}
}

// inForce is what is promised to queries of an app now, and for which rate; false while nothing is. A violation below 0
// is no promise of any.
func (p *promises) inForce(now serving.Time, a serving.AppID) (out plan.Promise, rate float64, ok bool) {
	x := &p.apps[a]
	if x.promise == nil || x.loading > 0 {
		return out, 0, false
	}
	out, rate = x.promise.At(p.rates.Recent(now, a))
	return out, rate, true
}

func (p *promises) outcome(o *report.Outcome) {
	if o.App < 0 || int(o.App) >= len(p.apps) || o.Outcome == serving.Cancelled {
		return
	}
	promise, _, ok := p.inForce(o.Done, o.App)
	if !ok {
		return
	}
	p.advance(o.Done, o.App)
	x := &p.apps[o.App]
	b := &x.ring[x.newest%windowBlocks]
	if promise.Violation >= 0 {
		b.queries++
		b.promised += promise.Violation
		x.queries.Inc()
		x.violations.Add(promise.Violation)
		if o.Outcome != serving.Served || o.Late() {
			b.violations++
		}
	}
	if o.Outcome == serving.Served {
		b.served++
		b.accuracy += o.Accuracy
		b.promisedAccuracy += promise.Accuracy
		x.accuracySum.Add(promise.Accuracy)
		x.accuracyCount.Inc()
	}
}

// advance ends the blocks that are over; when one is, the window is judged.
func (p *promises) advance(now serving.Time, a serving.AppID) {
	x := &p.apps[a]
	at := int64(now / x.length)
	if at <= x.newest {
		return
	}
	for _, j := range []struct {
		what  string
		gauge prometheus.Gauge
		judge func([]block, float64) (verdict, bool)
	}{
		{
			promisedViolations, x.violationsBroken, testViolations,
		}, {promisedAccuracy, x.accuracyBroken, testAccuracy},
	} {
		v, ok := j.judge(x.ring[:], 1-p.spec.Apps[a].SLO.Percentile/100)
		if v.broken = v.broken && ok; v.broken == x.broken[j.what] {
			continue
		}
		x.broken[j.what] = v.broken
		j.gauge.Set(map[bool]float64{true: 1}[v.broken])
		if p.notify != nil {
			p.notify(PromiseChange{
				App: a, What: j.what, Broken: v.broken, Promised: v.promised, Observed: v.observed, Queries: v.queries,
			})
		}
	}
	for k := max(x.newest+1, at-windowBlocks+1); k <= at; k++ {
		x.ring[k%windowBlocks] = block{}
	}
	x.newest = at
}

// verdict is what a window says about a promise.
type verdict struct {
	promised, observed float64
	queries            int
	broken             bool
}

// testViolations tells whether a window has more violations than promised; false when it has too few queries for a
// verdict.
//
// Violations come in bursts, so that queries are not independent draws, but blocks nearly are. Two tests look at them,
// each at byChance. Frequent violations: Student's t on the blocks' differences between observed and promised numbers
// (batch means). Rare ones: how many blocks have any. Were the promise kept, their number would be at most the promised
// number of violations in the mean, and a sum of independent draws whatever their chances exceeds a number above its
// mean plus one no more often than a binomial with that mean (Hoeffding 1956, theorem 4). Three blocks are asked for,
// since one burst may touch two.
func testViolations(window []block, allowed float64) (verdict, bool) {
	var v verdict
	var differences []float64
	hit, all, promised, observed := 0, 0.0, 0.0, 0.0
	for _, b := range window {
		if b.queries == 0 {
			continue
		}
		all += b.queries
		promised += b.promised
		observed += b.violations
		differences = append(differences, b.violations-b.promised)
		if b.violations > 0 {
			hit++
		}
	}
	n := len(differences)
	if n < minBlocks || all < minQueries {
		return v, false
	}
	v = verdict{promised: promised / all, observed: observed / all, queries: int(all)}
	rare := hit >= 3 && float64(hit) >= promised+1 && binomialTail(n, hit, promised/float64(n)) <= errorProbability
	v.broken = v.observed > v.promised+toleratedViolations*allowed && (rare || meanAbove(differences))
	return v, true
}

// testAccuracy tells whether a window's answers are less accurate than promised, by Student's t on the blocks'
// differences.
func testAccuracy(window []block, _ float64) (verdict, bool) {
	var v verdict
	var differences []float64
	all, promised, observed := 0.0, 0.0, 0.0
	for _, b := range window {
		if b.served == 0 {
			continue
		}
		all += b.served
		promised += b.promisedAccuracy
		observed += b.accuracy
		differences = append(differences, b.promisedAccuracy-b.accuracy)
	}
	if len(differences) < minBlocks || all < minQueries {
		return v, false
	}
	v = verdict{promised: promised / all, observed: observed / all, queries: int(all)}
	v.broken = v.observed < v.promised-toleratedAccuracy && meanAbove(differences)
	return v, true
}

// meanAbove tells whether the mean of independent values is above 0, wrong with a chance of byChance (one-sided
// Student's t).
func meanAbove(x []float64) bool {
	mean, margin := student.Margin(x, errorProbability)
	return mean > margin
}

// binomialTail is the chance that k or more of n independent draws succeed, each with chance p.
func binomialTail(n, k int, p float64) float64 {
	if p >= 1 {
		return 1
	}
	return mathext.RegIncBeta(float64(k), float64(n-k+1), p)
}
