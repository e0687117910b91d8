package telemetry

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gonum.org/v1/gonum/mathext"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/algo/student"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/monitor"
	"github.com/sluice-serving/sluice/serving/report"
)

// PromiseChange says that observations have come to contradict what an app's policies promise, by more than chance
// explains, or no longer do.
type PromiseChange struct {
	App  serving.AppID
	What string // "violations" or "accuracy"
	// Broken is false when observations agree with the promise again.
	Broken             bool
	Promised, Observed float64 // means over the window: share of violations, or accuracy
	Queries            int     // queries of the window that count
}

// values of PromiseChange.What
const (
	promisedViolations = "violations"
	promisedAccuracy   = "accuracy"
)

// Promises are tested over a window that is cut into blocks. A block is so long that the effects of a burst end in the
// block of the burst or the next one, so that blocks are almost independent.
const (
	windowBlocks       = 30
	minBlock           = 2 * time.Second // least length of a block
	objectivesPerBlock = 5               // least length of a block in SLOs
	minBlocks          = 10              // blocks with queries that a test needs
	minQueries         = 100
	// errorProbability is the probability with which each test calls a promise broken that is just kept.
	errorProbability = 0.001
	// Differences that do not matter: as a share of the violations that the objective allows, and in accuracy. Policies
	// follow a load that is measured over half a second, but make promises for a known one.
	toleratedViolations = 0.1
	toleratedAccuracy   = 0.005
)

// promises compares the promises of policies with observations. It follows the plan in force and the load as batchers
// do.
type promises struct {
	spec    *serving.Spec
	rates   *monitor.Rates
	request uint64 // Seq of the last plan that was asked for; older plans are ignored
	loading map[loading]bool
	apps    []appPromise
	names   *names
	make    func(app string) *promiseSeries
	notify  func(PromiseChange)
}

type loading struct {
	instance serving.InstanceID
	variant  serving.VariantID
}

// appPromise is the state of one app.
type appPromise struct {
	promise *plan.Promised // of the plan in force; nil without policies
	loading int            // number of wanted variants that are not loaded; no promise holds before they are
	length  serving.Time
	ring    [windowBlocks]block
	newest  int64 // number of the current block
	broken  map[string]bool

	series *promiseSeries // nil before the first promise to one of its queries
}

// promiseSeries are the series of one app.
type promiseSeries struct {
	rate, accuracy, violation  prometheus.Gauge
	queries, violations        prometheus.Counter
	accuracySum, accuracyCount prometheus.Counter
	broken                     map[string]prometheus.Gauge
}

// block has the counts of one block of the window.
type block struct {
	queries, violations, promised      float64 // queries that count, those that violate, and how many were promised to
	served, accuracy, promisedAccuracy float64 // sums over served queries
}

func newPromises(r registry, spec *serving.Spec, n *names, warn func(PromiseChange)) *promises {
	rate := r.gauge("sluice_policy_rate", "Arrival rate in queries/s that the policy in force was made for.", "app")
	accuracy := r.gauge("sluice_policy_expected_accuracy", "Accuracy that the policy in force promises.", "app")
	violation := r.gauge("sluice_policy_expected_violation_ratio",
		"Share of violations that the policy in force promises not to exceed; NaN where it promises none.", "app")
	queries := r.counter("sluice_promised_queries_total",
		"Queries that count for the objective and ended while a policy with a promise of violations was in force.",
		"app")
	violations := r.counter("sluice_promised_violations_total",
		"How many of them were promised to violate the objective at most.", "app")
	accuracySum := r.counter("sluice_promised_accuracy_sum",
		"Sum of the promised accuracy over queries answered while a policy was in force.", "app")
	accuracyCount := r.counter("sluice_promised_accuracy_count", "Queries answered while a policy was in force.", "app")
	broken := r.gauge("sluice_promise_broken",
		"1 while observations of the last minute contradict what policies promise.", "app", "promise")
	p := &promises{
		spec: &serving.Spec{}, names: n, rates: monitor.NewRates(0), loading: make(map[loading]bool), notify: warn,
	}
	p.make = func(app string) *promiseSeries {
		x := &promiseSeries{
			queries: queries.WithLabelValues(app), violations: violations.WithLabelValues(app),
			accuracySum: accuracySum.WithLabelValues(app), accuracyCount: accuracyCount.WithLabelValues(app),
		}
		if app != Other { // what follows cannot be added up
			x.rate, x.accuracy = rate.WithLabelValues(app), accuracy.WithLabelValues(app)
			x.violation, x.broken = violation.WithLabelValues(app), make(map[string]prometheus.Gauge)
			for _, what := range []string{promisedAccuracy, promisedViolations} {
				x.broken[what] = broken.WithLabelValues(app, what)
			}
		}
		return x
	}
	p.grow(spec)
	return p
}

// grow adds the state of new apps.
func (p *promises) grow(spec *serving.Spec) {
	fresh := spec.FreshSince(p.spec)
	p.spec = spec
	p.rates.Grow(fresh.Apps)
	for a := range p.apps {
		if spec.Apps[a].Closed {
			p.apps[a].series = nil // it is dropped with those of the app
		}
	}
	p.apps = serving.Renew(p.apps, fresh.Apps, func(a serving.AppID) appPromise {
		return appPromise{
			length: serving.Time(max(minBlock, objectivesPerBlock*spec.Apps[a].SLO.Latency)),
			broken: make(map[string]bool),
		}
	})
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
			p.request = d.Request.Snapshot.Seq
		}
	}
	for a := range p.apps {
		x := &p.apps[a]
		if x.promise == nil {
			continue
		}
		if seen {
			if promise, rate, ok := p.inForce(now, serving.AppID(a)); ok {
				p.show(serving.AppID(a), promise, rate)
			}
		}
		p.advance(now, serving.AppID(a))
	}
}

// show sets what is promised to an app now, once it has been called.
func (p *promises) show(a serving.AppID, promise plan.Promise, rate float64) {
	if !p.names.has(p.spec.Apps[a].Name) {
		return
	}
	x := p.seriesOf(a)
	x.rate.Set(rate)
	x.accuracy.Set(promise.Accuracy)
	if promise.Violation < 0 {
		promise.Violation = math.NaN()
	}
	x.violation.Set(promise.Violation)
}

// seriesOf returns the series of an app that has been called.
func (p *promises) seriesOf(a serving.AppID) *promiseSeries {
	x := &p.apps[a]
	if x.series == nil {
		name := p.spec.Apps[a].Name
		if !p.names.has(name) {
			name = Other
		}
		x.series = p.make(name)
	}
	return x.series
}

// adopt takes the promises of a plan that comes into force. A promise for one of several stages says nothing about the
// app.
func (p *promises) adopt(made *plan.Plan) {
	for a := range p.apps {
		p.apps[a].promise = nil
		if stages := p.spec.Apps[a].Stages; len(stages) == 1 {
			p.apps[a].promise = made.Promised(p.spec, stages[0])
		}
	}
}

// setLoading records that a variant begins or ends loading.
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

// inForce returns the promise for queries of an app now, and the rate that it is for; false when there is none. A
// Violation below 0 means that violations are not promised.
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
	x, series := &p.apps[o.App], p.seriesOf(o.App)
	b := &x.ring[x.newest%windowBlocks]
	if promise.Violation >= 0 {
		b.queries++
		b.promised += promise.Violation
		series.queries.Inc()
		series.violations.Add(promise.Violation)
		if o.Outcome != serving.Served || o.Late() {
			b.violations++
		}
	}
	if o.Outcome == serving.Served {
		b.served++
		b.accuracy += o.Accuracy
		b.promisedAccuracy += promise.Accuracy
		series.accuracySum.Add(promise.Accuracy)
		series.accuracyCount.Inc()
	}
}

// advance ends blocks that are over, and then tests the window.
func (p *promises) advance(now serving.Time, a serving.AppID) {
	x := &p.apps[a]
	at := int64(now / x.length)
	if at <= x.newest {
		return
	}
	for _, j := range []struct {
		what  string
		judge func([]block, float64) (verdict, bool)
	}{
		{
			promisedViolations, testViolations,
		}, {promisedAccuracy, testAccuracy},
	} {
		v, ok := j.judge(x.ring[:], p.spec.Apps[a].SLO.Allowed())
		if v.broken = v.broken && ok; v.broken == x.broken[j.what] {
			continue
		}
		x.broken[j.what] = v.broken
		if x.series != nil && x.series.broken != nil {
			x.series.broken[j.what].Set(map[bool]float64{true: 1}[v.broken])
		}
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

// verdict is the result of a test.
type verdict struct {
	promised, observed float64
	queries            int
	broken             bool
}

// testViolations tests whether a window has more violations than promised. It returns false for a window with too few
// queries.
//
// Violations come in bursts, so queries are not independent draws, but blocks almost are. There are two tests, each
// with errorProbability. For frequent violations it is Student's t on the differences of blocks between observed and
// promised numbers (batch means). For rare ones it is the number of blocks with any violation. If the promise is kept,
// its mean is at most the promised number of violations. A sum of independent draws of any probabilities exceeds a
// number above its mean plus one no more often than a binomial of that mean (Hoeffding 1956, theorem 4). At least three
// blocks are required, as one burst may touch two.
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

// testAccuracy tests whether the answers of a window are less accurate than promised, by Student's t on the differences
// of blocks. It returns false for a window with too few queries.
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

// meanAbove reports whether the mean of independent values is above 0, by a one-sided Student's t with
// errorProbability.
func meanAbove(x []float64) bool {
	mean, margin := student.Margin(x, errorProbability)
	return mean > margin
}

// binomialTail returns the probability that at least k of n independent draws succeed, each with probability p.
func binomialTail(n, k int, p float64) float64 {
	if p >= 1 {
		return 1
	}
	return mathext.RegIncBeta(float64(k), float64(n-k+1), p)
}
