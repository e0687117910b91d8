package telemetry

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/report"
)

// promised returns a telemetry of one app, and a plan with policies for 10 and 100 queries/s.
func promisedWorld() (*serving.Spec, *plan.Plan) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "cpu", Cores: 1}},
		Workers:     []serving.Worker{{Name: "w0"}},
		Apps: []serving.App{
			{
				Name: "app", SLO: serving.SLO{
					Latency: 100 * time.Millisecond, Percentile: 99,
				}, Weight: 1, Stages: []serving.StageID{0},
			},
		},
		Stages: []serving.Stage{{Name: "app", Variants: []serving.VariantID{0, 1}}},
		Variants: []serving.Variant{
			{Name: "big", Accuracy: 0.9, MaxBatch: 1}, {Name: "small", Accuracy: 0.8, MaxBatch: 1},
		},
	}
	policy := func(rate, accuracy, violation float64) plan.Policy {
		return plan.Policy{
			Rate: rate, Slacks: []time.Duration{0}, Choices: []plan.Choice{{Variant: 0, Queries: 1}},
			Promise: plan.Promise{Accuracy: accuracy, Violation: violation},
		}
	}
	return spec, &plan.Plan{
		Instances: []plan.Instance{
			{Variants: []plan.Variant{{Variant: 0, Limit: 1}, {Variant: 1, Limit: 1}}, Slots: 1, Share: 1},
		},
		Policies: []plan.Policies{
			{DeviceType: serving.None, ByRate: []plan.Policy{policy(10, 0.9, 0.001), policy(100, 0.85, 0.02)}},
		},
	}
}

// script feeds a telemetry with evenly spaced queries, each answered a millisecond after its arrival.
type script struct {
	telemetry *Telemetry
	now       serving.Time
	id        serving.QueryID
}

// offer sends queries at a rate for a span. late says which answers are late, accuracy how accurate they are.
func (s *script) offer(rate int, span time.Duration, late func(k int) bool, accuracy float64) {
	gap := serving.Time(time.Second) / serving.Time(rate)
	for k := range int(span.Seconds() * float64(rate)) {
		s.now += gap
		s.id++
		arrived := engine.Input{Kind: engine.QueryArrived, Query: serving.Query{ID: s.id, App: 0, Arrived: s.now}}
		s.telemetry.log.Observe(s.now, []engine.Input{arrived}, nil)
		o := report.Outcome{
			Query: s.id, App: 0, Variant: 0, Outcome: serving.Served, Arrived: s.now, Done: s.now + 1e6,
			Deadline: s.now + 1e8, Items: 1, Batch: 1, Accuracy: accuracy,
		}
		if late(k) {
			o.Deadline = s.now
		}
		s.telemetry.Outcome(o)
	}
}

func never(int) bool { return false }

func every(n int) func(int) bool { return func(k int) bool { return k%n == 0 } }

func ready(i serving.InstanceID, v serving.VariantID) engine.Input {
	return engine.Input{Kind: engine.InstanceChanged, Instance: i, Change: engine.VariantReady, Variant: v}
}

// The promise that is shown and counted is that of the policy for the load, once all variants are loaded. It is never
// that of a plan that the engine ignores.
func TestPromiseInForce(t *testing.T) {
	spec, p := promisedWorld()
	s := script{telemetry: viewing(spec, Options{})}
	s.telemetry.names.claim(spec.Apps[0].Name) // as its first query does
	x := s.telemetry.promises.seriesOf(0)
	s.telemetry.log.Observe(0, []engine.Input{{Kind: engine.PlanReady, Plan: p}},
		[]engine.Decision{
			{Kind: engine.LaunchInstance, Instance: 1, Launch: &engine.Launch{Variants: []serving.VariantID{0, 1}}},
		})
	s.telemetry.log.Observe(0, []engine.Input{ready(1, 0)}, nil)
	s.offer(5, 2*time.Second, never, 0.9)
	if value(x.queries) != 0 || value(x.accuracy) != 0 {
		t.Errorf("while a variant loads, %v queries were promised something, accuracy %v", value(x.queries),
			value(x.accuracy))
	}
	s.telemetry.log.Observe(s.now, []engine.Input{ready(1, 1)}, nil)
	check := func(when string, rate, accuracy, violation float64) {
		t.Helper()
		if value(x.rate) != rate || value(x.accuracy) != accuracy || value(x.violation) != violation {
			t.Errorf("%s: policy for %v/s, accuracy %v, violations %v; want %v, %v, %v", when, value(x.rate),
				value(x.accuracy), value(x.violation), rate, accuracy, violation)
		}
	}
	s.offer(8, 2*time.Second, never, 0.9)
	check("at 8/s", 10, 0.9, 0.001)
	if n := value(x.queries); n != 16 || math.Abs(value(x.violations)-0.016) > 1e-9 ||
		math.Abs(value(x.accuracySum)-16*0.9) > 1e-9 || value(x.accuracyCount) != 16 {
		t.Errorf("%v queries, %v violations and accuracy %v over %v were promised", n, value(x.violations),
			value(x.accuracySum), value(x.accuracyCount))
	}
	s.offer(50, 2*time.Second, never, 0.9)
	check("at 50/s", 100, 0.85, 0.02)
	s.offer(500, 2*time.Second, never, 0.9)
	check("beyond all rates", 100, 0.85, 0.02)

	other := *p
	other.Snapshot, other.Policies = 3, []plan.Policies{
		{
			DeviceType: 0, ByRate: []plan.Policy{
				{
					Rate: 1000, Slacks: []time.Duration{0}, Choices: p.Policies[0].ByRate[0].Choices,
					Promise: plan.Promise{Accuracy: 0.7},
				},
			},
		},
	}
	s.telemetry.log.Observe(s.now, nil, []engine.Decision{{
		Kind: engine.RequestPlan, Request: &plan.Request{Snapshot: &fleet.Snapshot{Seq: 5}},
	}})
	s.telemetry.log.Observe(s.now, []engine.Input{{Kind: engine.PlanReady, Plan: &other}}, nil)
	s.offer(500, time.Second, never, 0.9)
	check("after a plan that came too late", 100, 0.85, 0.02)
	other.Snapshot = 5
	s.telemetry.log.Observe(s.now, []engine.Input{{Kind: engine.PlanReady, Plan: &other}}, nil)
	s.offer(500, time.Second, never, 0.9)
	check("after the plan asked for", 1000, 0.7, 0)
	s.telemetry.log.Observe(s.now, nil, []engine.Decision{{Kind: engine.LoadVariant, Instance: 1, Variant: 1}})
	before := value(x.queries)
	s.offer(100, time.Second, never, 0.9)
	s.telemetry.log.Observe(s.now,
		[]engine.Input{{Kind: engine.InstanceChanged, Instance: 1, Change: engine.Lost}}, nil)
	if value(x.queries) != before {
		t.Error("promised while a variant was loaded anew")
	}
	s.offer(100, time.Second, never, 0.9)
	if value(x.queries) != before+100 {
		t.Error("nothing promised after the instance was lost with what it loaded")
	}
}

// Policies that promise no share of violations, as those that only look at the load, are not tested for violations.
func TestNoPromiseOfViolations(t *testing.T) {
	spec, p := promisedWorld()
	for i := range p.Policies[0].ByRate {
		p.Policies[0].ByRate[i].Promise.Violation = -1
	}
	s := script{telemetry: viewing(spec, Options{PromiseChanged: func(d PromiseChange) { t.Errorf("%+v", d) }})}
	s.telemetry.log.Observe(0, []engine.Input{{Kind: engine.PlanReady, Plan: p}}, nil)
	s.offer(100, 70*time.Second, every(2), 0.9)
	x := s.telemetry.promises.seriesOf(0)
	if value(x.queries) != 0 || !math.IsNaN(value(x.violation)) || value(x.accuracyCount) != 7000 {
		t.Errorf("%v queries were promised violations, %v, and %v an accuracy", value(x.queries), value(x.violation),
			value(x.accuracyCount))
	}
}

// A broken promise causes one warning, and another call when it is kept again.
func TestDepartures(t *testing.T) {
	for _, c := range []struct {
		name     string
		late     func(int) bool
		accuracy float64
		broken   string
	}{
		{"as promised", every(50), 0.85, ""},
		{"better than promised", never, 0.9, ""},
		{"hardly worse: within the tenth of the objective that does not matter", every(48), 0.846, ""},
		{"one bad moment", func(k int) bool { return k > 3000 && k < 3100 }, 0.85, ""},
		{"too many late", every(10), 0.85, promisedViolations},
		{"all late from some time on", func(k int) bool { return k > 4000 }, 0.85, promisedViolations},
		{"less accurate", never, 0.84, promisedAccuracy},
	} {
		spec, p := promisedWorld()
		var changes []PromiseChange
		note := func(d PromiseChange) { changes = append(changes, d) }
		s := script{telemetry: viewing(spec, Options{PromiseChanged: note})}
		s.telemetry.log.Observe(0, []engine.Input{{Kind: engine.PlanReady, Plan: p}}, nil)
		s.offer(100, 70*time.Second, c.late, c.accuracy)
		gauges := s.telemetry.promises.seriesOf(0).broken
		for what, g := range gauges {
			if want := map[bool]float64{true: 1}[what == c.broken]; value(g) != want {
				t.Errorf("%s: promise of %s broken: %v, want %v", c.name, what, value(g), want)
			}
		}
		if c.broken == "" {
			if len(changes) > 0 {
				t.Errorf("%s: %+v", c.name, changes)
			}
			continue
		}
		if len(changes) != 1 || !changes[0].Broken || changes[0].What != c.broken || changes[0].Queries < minQueries {
			t.Errorf("%s: %+v", c.name, changes)
			continue
		}
		s.offer(100, 70*time.Second, never, 0.9)
		if len(changes) != 2 || changes[1].Broken || changes[1].What != c.broken || value(gauges[c.broken]) != 0 {
			t.Errorf("%s: after a good minute %+v", c.name, changes)
		}
	}
}

// A promise of almost no violations is broken by a few bursts in a minute, although each is small.
func TestRareViolations(t *testing.T) {
	window := make([]block, windowBlocks)
	for i := range window {
		window[i] = block{queries: 100, promised: 1e-4}
	}
	for hit := range 6 {
		v, ok := testViolations(window, 0.01)
		if want := hit >= 3; !ok || v.broken != want {
			t.Errorf("%d blocks hit: %+v %v", hit, v, ok)
		}
		window[5*hit].violations = 4
	}
	if _, ok := testViolations(window[:minBlocks-1], 0.01); ok {
		t.Error("a verdict from too few blocks")
	}
}

// A promise that is just kept is almost never called broken, whether violations are rare or frequent, alone or in
// bursts.
func TestFalseAlarms(t *testing.T) {
	const windows = 20000
	rng := rand.New(rand.NewPCG(11, 11))
	poisson := func(mean float64) (n int) {
		for x := rng.ExpFloat64(); x < mean; x += rng.ExpFloat64() {
			n++
		}
		return n
	}
	for _, bursts := range []float64{0.003, 0.03, 0.3, 3} { // bursts in a block
		for _, size := range []float64{1, 5, 20} {
			alarms := 0
			for range windows {
				window := make([]block, windowBlocks)
				for i := range window {
					b := &window[i]
					// With few queries, whether the violations matter is left to the tests.
					b.queries, b.promised = 100, bursts*size
					for range poisson(bursts) {
						b.violations++
						for rng.Float64() > 1/size {
							b.violations++
						}
					}
				}
				if v, _ := testViolations(window, 0); v.broken {
					alarms++
				}
			}
			// Two tests, and four standard deviations.
			if most := 2*errorProbability*windows + 4*math.Sqrt(2*errorProbability*windows); float64(alarms) > most {
				t.Errorf("%v bursts of %v a block: %d of %d windows raise an alarm, want at most %.0f", bursts, size,
					alarms, windows, most)
			}
		}
	}
}

// The binomial tail equals its sum.
func TestAtLeast(t *testing.T) {
	for _, n := range []int{10, 30} {
		for _, p := range []float64{1e-6, 0.01, 0.3, 0.9} {
			for k := 1; k <= n; k++ {
				sum, choose := 0.0, 1.0
				for i := range n + 1 {
					if i >= k {
						sum += choose * math.Pow(p, float64(i)) * math.Pow(1-p, float64(n-i))
					}
					choose = choose * float64(n-i) / float64(i+1)
				}
				if got := binomialTail(n, k, p); math.Abs(got-sum) > 1e-9*max(sum, 1e-300) &&
					math.Abs(got-sum) > 1e-14 {
					t.Errorf("%d of %d at %v: %v, want %v", k, n, p, got, sum)
				}
			}
		}
	}
}
