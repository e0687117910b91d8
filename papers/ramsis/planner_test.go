package ramsis

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// believed are latencies of n items: base + n*each, by variant and device type.
type believed [][][2]time.Duration

func (b believed) Latency(v serving.VariantID, d serving.DeviceTypeID, items, _ int) time.Duration {
	return b[v][d][0] + time.Duration(items)*b[v][d][1]
}

func (believed) Learner() profile.Learner { return nil }

func (b believed) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 0 }

// testSpec has two apps, the first with three variants and the second with one, and workers of two types, the second
// twice as slow.
func testSpec(fast, slow int) (*serving.Spec, believed) {
	app := func(name string, slo time.Duration, s serving.StageID) serving.App {
		return serving.App{
			Name: name, SLO: serving.SLO{Latency: slo, Percentile: 99}, Late: serving.ServeLate, Weight: 1,
			QueueLimit: 100, Stages: []serving.StageID{s},
		}
	}
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "fast", PricePerHour: 2}, {Name: "slow", PricePerHour: 1}},
		Apps:        []serving.App{app("images", 150*msec, 0), app("texts", 100*msec, 1)},
		Stages: []serving.Stage{
			{Name: "images", App: 0, Variants: []serving.VariantID{0, 1, 2}}, {
				Name: "texts", App: 1, Variants: []serving.VariantID{3},
			},
		},
		Variants: []serving.Variant{{Name: "small", Accuracy: 0.6, MaxBatch: 6, MemoryBytes: 10}, {
			Name: "medium", Accuracy: 0.75, MaxBatch: 6, MemoryBytes: 20,
		},
			{
				Name: "large", Accuracy: 0.85, MaxBatch: 6, MemoryBytes: 40,
			}, {Name: "text", Stage: 1, Accuracy: 0.9, MaxBatch: 4}},
	}
	for range fast {
		spec.Workers = append(spec.Workers, serving.Worker{})
	}
	for range slow {
		spec.Workers = append(spec.Workers, serving.Worker{DeviceType: 1})
	}
	both := func(base, each time.Duration) [][2]time.Duration {
		return [][2]time.Duration{{base, each}, {2 * base, 2 * each}}
	}
	return spec, believed{both(5*msec, 12*msec), both(10*msec, 25*msec), both(20*msec, 50*msec), both(5*msec, 5*msec)}
}

// kept is a store in memory.
type kept struct {
	by          map[string]*plan.Policy
	found, made int
}

func (k *kept) Get(key string) (*plan.Policy, bool) {
	p, ok := k.by[key]
	if ok {
		k.found++
	}
	return p, ok
}

func (k *kept) Put(key string, p *plan.Policy) { k.by[key] = p; k.made++ }

func TestPlanner(t *testing.T) {
	spec, profile := testSpec(6, 3)
	store := &kept{by: make(map[string]*plan.Policy)}
	p := &Planner{Profile: profile, Store: store, Options: Options{Levels: 30}}
	got, err := p.Plan(t.Context(), plan.Request{Spec: spec, Rates: []float64{100, 50}})
	if err != nil {
		t.Fatal(err)
	}
	// Every worker serves one app with all its variants; each app has workers of both types.
	stages := make(map[serving.StageID][]serving.DeviceTypeID)
	for _, i := range got.Instances {
		if want := len(spec.Stages[i.Stage].Variants); len(i.Variants) != want {
			t.Errorf("worker %d: %d variants, want %d", i.Worker, len(i.Variants), want)
		}
		stages[i.Stage] = append(stages[i.Stage], spec.Workers[i.Worker].DeviceType)
	}
	if len(got.Instances) != 9 || len(stages[0]) <= len(stages[1]) || len(stages[1]) == 0 {
		t.Errorf("workers by app: %v", stages)
	}
	for s, types := range stages {
		slices.Sort(types)
		for _, d := range slices.Compact(types) {
			set := got.PoliciesOf(s, d)
			if set == nil {
				t.Fatalf("stage %d has no policies for type %d", s, d)
			}
			for i := 1; i < len(set.ByRate); i++ {
				a, b := set.ByRate[i-1], set.ByRate[i]
				step := max(math.Abs(a.Promise.Accuracy-b.Promise.Accuracy), b.Promise.Violation-a.Promise.Violation)
				if step > 0.01 && a.Promise.Violation <= maxViolation && b.Rate > a.Rate*minRateRatio+1 {
					t.Errorf("stage %d, type %d: the promise moves by %.3f from %.0f to %.0f queries/s", s, d, step,
						a.Rate, b.Rate)
				}
			}
			first, best := set.ByRate[0], 0.0
			for _, v := range spec.Stages[s].Variants {
				best = max(best, spec.Variants[v].Accuracy)
			}
			if first.Promise.Accuracy < best-0.01 {
				t.Errorf("stage %d, type %d: at %.3f queries/s accuracy %.3f, the best variant has %.3f", s, d,
					first.Rate, first.Promise.Accuracy, best)
			}
			if s == 0 && len(set.ByRate) < 10 {
				t.Errorf("stage %d, type %d: only %d policies", s, d, len(set.ByRate))
			}
		}
	}
	if f := got.Forecast; f.CostPerHour != 6*2+3 || f.Accuracy < 0.6 || f.Accuracy > 0.9 || f.Violation > 0.1 {
		t.Errorf("forecast %+v", f)
	}
	// A second plan makes no policy, neither from memory nor from the store.
	made := store.made
	for _, again := range []*Planner{p, {Profile: profile, Store: store, Options: p.Options}} {
		second, err := again.Plan(t.Context(), plan.Request{Spec: spec, Rates: []float64{100, 50}})
		if err != nil || store.made != made {
			t.Errorf("%d policies were made again (%v)", store.made-made, err)
		}
		if !slices.EqualFunc(second.Policies, got.Policies, func(a, b plan.Policies) bool {
			return len(a.ByRate) == len(b.ByRate)
		}) {
			t.Error("the second plan has other policies")
		}
	}
	if store.found == 0 {
		t.Error("nothing came from the store")
	}
}

// A demand beyond what the policies cover adds one for it and leaves the rest (RAMSIS §3.2.2).
func TestMissingLoad(t *testing.T) {
	spec, profile := testSpec(8, 0)
	store := &kept{by: make(map[string]*plan.Policy)}
	p := &Planner{Profile: profile, Store: store, Options: Options{Levels: 30, Rates: []float64{10, 20}}}
	first, err := p.Plan(t.Context(), plan.Request{Spec: spec, Rates: []float64{15, 15}})
	if err != nil {
		t.Fatal(err)
	}
	snapshot := &fleet.Snapshot{Seq: 4}
	for _, i := range first.Instances {
		s := fleet.InstanceSnapshot{Key: fleet.Key{Worker: i.Worker, Ordinal: 1}, Stage: i.Stage, State: fleet.Ready}
		for _, v := range i.Variants {
			s.Variants = append(s.Variants, fleet.Loaded{Variant: v.Variant, Wanted: true, Warm: true})
		}
		snapshot.Instances = append(snapshot.Instances, s)
	}
	made := store.made
	second, err := p.Plan(t.Context(), plan.Request{Spec: spec, Snapshot: snapshot, Rates: []float64{33, 15}})
	if err != nil {
		t.Fatal(err)
	}
	if store.made != made+1 || second.Loads != 0 || second.Snapshot != 4 {
		t.Errorf("%d policies made, %d loads, snapshot %d", store.made-made, second.Loads, second.Snapshot)
	}
	rates := func(p *plan.Plan, s serving.StageID) (out []float64) {
		for _, x := range p.PoliciesOf(s, 0).ByRate {
			out = append(out, x.Rate)
		}
		return out
	}
	if !slices.Equal(rates(first, 0), []float64{10, 20}) || !slices.Equal(rates(second, 0), []float64{10, 20, 33}) ||
		!slices.Equal(rates(second, 1), []float64{10, 20}) {
		t.Errorf("policies for %v, then %v and %v", rates(first, 0), rates(second, 0), rates(second, 1))
	}
	for k := range first.Instances {
		if first.Instances[k].Worker != second.Instances[k].Worker ||
			first.Instances[k].Stage != second.Instances[k].Stage {
			t.Errorf("worker %d changed its app", second.Instances[k].Worker)
		}
	}
}

// A worker whose memory does not hold every variant keeps the fastest one and those whose accuracy adds most.
func TestMemory(t *testing.T) {
	spec, profile := testSpec(4, 0)
	for memory, want := range map[int64][]serving.VariantID{0: {0, 1, 2}, 70: {0, 1, 2}, 60: {0, 1}, 12: {0}} {
		spec.DeviceTypes[0].MemoryBytes = memory
		p := &Planner{Profile: profile, Options: Options{Levels: 10, Rates: []float64{10}}}
		got, err := p.Plan(t.Context(), plan.Request{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		var has []serving.VariantID
		for _, v := range got.Instances[0].Variants {
			has = append(has, v.Variant)
		}
		if !slices.Equal(has, want) {
			t.Errorf("memory %d: variants %v, want %v", memory, has, want)
		}
	}
}

// Two apps on one worker take turns. Each has a policy, made for the rate that it would have with the worker to itself:
// what the other leaves of it.
func TestAppsShareAWorker(t *testing.T) {
	spec, profile := testSpec(1, 0)
	p := &Planner{Profile: profile, Options: Options{Levels: 10, SingleRate: true}}
	out, err := p.Plan(t.Context(), plan.Request{Spec: spec, Rates: []float64{20, 10}})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Instances) != 2 || !out.Instances[0].TimeShared || !out.Instances[1].TimeShared ||
		!slices.Equal(out.Sharing, []serving.StageID{1}) {
		t.Errorf("%+v", out)
	}
	alone, _ := testSpec(2, 0)
	all, err := p.Plan(t.Context(), plan.Request{Spec: alone, Rates: []float64{20, 10}})
	if err != nil {
		t.Fatal(err)
	}
	for s, rate := range []float64{20, 10} {
		id := serving.StageID(s)
		shared, own := out.PoliciesOf(id, 0).At(rate), all.PoliciesOf(id, 0).At(rate)
		if math.Abs(shared.Rate-rate) > 1e-9 || shared.Promise.Accuracy > own.Promise.Accuracy+1e-9 ||
			shared.Promise.Utilization <= own.Promise.Utilization {
			t.Errorf("app %d at %v/s: for %v/s, %+v; with a worker of its own %+v", s, rate, shared.Rate,
				shared.Promise, own.Promise)
		}
	}
}

func TestPlannerErrors(t *testing.T) {
	spec, profile := testSpec(2, 0)
	p := &Planner{Profile: profile, Options: Options{Levels: 10}}
	stopped, stop := context.WithCancelCause(context.Background())
	stop(errors.New("enough"))
	if _, err := p.Plan(stopped, plan.Request{Spec: spec}); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("stopped: %v", err)
	}
	spec.Apps[1].SLO.Latency = 5 * msec
	if _, err := p.Plan(t.Context(), plan.Request{Spec: spec}); err == nil ||
		!strings.Contains(err.Error(), `app "texts"`) {
		t.Errorf("an objective that nothing meets: %v", err)
	}
	few, _ := testSpec(1, 0)
	few.DeviceTypes[0].MemoryBytes, few.Variants[3].MemoryBytes = 15, 10
	if _, err := p.Plan(t.Context(), plan.Request{Spec: few}); err == nil ||
		!strings.Contains(err.Error(), "share 1 workers") {
		t.Errorf("fewer workers than apps, and memory for one of them: %v", err)
	}
	spec, _ = testSpec(2, 0)
	spec.Workers = spec.Workers[:2]
	spec.Stages[0].Next = []serving.Edge{{To: 1, FanOut: 1}}
	spec.Stages[1].App, spec.Stages[1].Joins = 0, 1
	spec.Apps = spec.Apps[:1]
	spec.Apps[0].Stages = []serving.StageID{0, 1}
	if _, err := p.Plan(t.Context(), plan.Request{Spec: spec}); err == nil ||
		!strings.Contains(err.Error(), "2 stages") {
		t.Errorf("an app of two stages: %v", err)
	}
}

// slower takes by a factor longer.
type slower struct {
	profile.Profile
	factor time.Duration
}

func (s slower) Latency(v serving.VariantID, d serving.DeviceTypeID, items, n int) time.Duration {
	return s.factor * s.Profile.Latency(v, d, items, n)
}

// Latencies believed since the planner was made count in place of its own: plans are those of a planner made with them.
// Their policies are not kept for other runs, and those of earlier beliefs are let go.
func TestBeliefsOfTheRequest(t *testing.T) {
	spec, made := testSpec(4, 0)
	store := &kept{by: make(map[string]*plan.Policy)}
	p := &Planner{Profile: made, Store: store, Options: Options{Rates: []float64{20, 60}}}
	r := plan.Request{Spec: spec, Rates: []float64{20, 10}}
	was, err := p.Plan(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	stored := len(store.by)
	now := slower{made, 2}
	r.Beliefs = now
	got, err := p.Plan(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	want, err := (&Planner{Profile: now, Options: p.Options}).Plan(context.Background(), plan.Request{
		Spec: spec, Rates: r.Rates,
	})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v, %v", got, want, err)
	}
	if got.Forecast.Accuracy >= was.Forecast.Accuracy || len(store.by) != stored || len(p.sets) != 2 {
		t.Errorf("accuracy %v after %v; %d policies stored, were %d; %d sets", got.Forecast.Accuracy,
			was.Forecast.Accuracy, len(store.by), stored, len(p.sets))
	}
}

// A planner that reacts makes the policies of the pattern that is seen, and none twice.
func TestPlannerReacts(t *testing.T) {
	spec, profile := testSpec(6, 3)
	rates, options := []float64{100, 50}, Options{Levels: 10, Rates: []float64{120}}
	made := 0
	reacting := &Planner{Profile: profile, Options: options, OnMade: func(float64) { made++ }}
	reacting.Options.Reacts = true
	for _, c := range []struct{ seen, expected float64 }{{0, 1. / 64}, {0.8, 1}, {5, 4}, {1.2, 1}, {1000, 64}} {
		told := &Planner{Profile: profile, Options: options}
		told.Options.Shape = 1 / c.expected
		got, err := reacting.Plan(t.Context(), plan.Request{
			Spec: spec, Rates: rates, Dispersions: []float64{c.seen, c.seen},
		})
		if err != nil {
			t.Fatal(err)
		}
		want, err := told.Plan(t.Context(), plan.Request{Spec: spec, Rates: rates})
		if err != nil {
			t.Fatal(err)
		}
		for k := range got.Policies {
			x := &got.Policies[k]
			if x.Dispersion != c.expected || !x.Expects(c.seen) {
				t.Errorf("dispersion %v seen: policies for %v", c.seen, x.Dispersion)
			}
			if !reflect.DeepEqual(x.ByRate, want.Policies[k].ByRate) {
				t.Errorf("dispersion %v seen: not the policies of shape %v", c.seen, told.Options.Shape)
			}
		}
	}
	if made != 16 { // four patterns, two apps, two types of worker
		t.Errorf("%d policies were made, want 16", made)
	}
}
