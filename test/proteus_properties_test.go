package test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/papers/proteus"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Plans over random clusters with graphs of stages, one after the other while the demand moves, workers fail and
// variants break, for every goal: each keeps the rules, its forecast agrees with values recomputed here from its
// instances, and the same request gives the same plan.
func TestProteusPlansAreSound(t *testing.T) {
	t.Parallel()
	plans, whole, shed, refused := 0, 0, 0, 0
	for seed := range uint64(longtest.Of(20, 30)) {
		rng := rand.New(rand.NewPCG(seed, 31))
		c := simtest.Random(rng)
		for range rng.IntN(8) {
			c.Spec.Workers = append(c.Spec.Workers, serving.Worker{
				Name:       fmt.Sprintf("more%d", len(c.Spec.Workers)),
				DeviceType: serving.DeviceTypeID(rng.IntN(len(c.Spec.DeviceTypes))),
			})
		}
		for a := range c.Spec.Apps {
			if rng.IntN(3) == 0 {
				c.Spec.Apps[a].Floor = 0.7 * rng.Float64()
			}
			c.Spec.Apps[a].Weight = float64(1 + rng.IntN(2))
		}
		for v := range c.Spec.Variants {
			c.Spec.Variants[v].MemoryBytes, c.Spec.Variants[v].ItemBytes = int64(rng.IntN(10)), int64(rng.IntN(3))
		}
		for d := range c.Spec.DeviceTypes {
			c.Spec.DeviceTypes[d].MemoryBytes = int64(10 + rng.IntN(60))
		}
		o := proteus.Options{Goal: proteus.Goal(seed % 4), Headroom: 1 + 0.1*rng.Float64(), Nodes: 200}
		if rng.IntN(2) == 0 {
			o.Batches = []int{1, 2, 4, 8}
		}
		if rng.IntN(2) == 0 {
			o.Slack = -1
		}
		p := &proteus.Planner{Profile: c.Profile, Solver: highstest.Solver(t), Options: o}
		r := plan.Request{Spec: c.Spec, Rates: make([]float64, len(c.Spec.Apps))}
		for round := range 5 {
			for a := range r.Rates {
				r.Rates[a] = math.Exp(9 * rng.Float64())
			}
			at := fmt.Sprintf("seed %d, round %d", seed, round)
			got, err := p.Plan(t.Context(), r)
			if err != nil {
				if canServe(r, p) {
					t.Fatalf("%s: %v", at, err)
				}
				refused++
				break
			}
			if again, _ := p.Plan(t.Context(), r); !reflect.DeepEqual(got, again) {
				t.Fatalf("%s: a second plan for the same request is another", at)
			}
			if err := got.Validate(c.Spec); err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			plans++
			if checkPlan(t, at, r, p, got) {
				whole++
			}
			if got.Shed != nil {
				shed++
			}
			r.Snapshot = inForce(got)
			if rng.IntN(3) == 0 {
				r.Snapshot.Down = append(r.Snapshot.Down, serving.WorkerID(rng.IntN(len(c.Spec.Workers))))
			}
			if rng.IntN(4) == 0 {
				r.Snapshot.Broken = append(r.Snapshot.Broken, serving.VariantID(rng.IntN(len(c.Spec.Variants))))
			}
		}
	}
	t.Logf("%d plans, %d of them serve everything and are proven, %d shed; %d requests that no plan can answer", plans,
		whole, shed, refused)
	if whole < 40 || shed < 15 || refused == 0 {
		t.Errorf("%d plans, %d serve everything and are proven, %d shed, %d requests were refused: too few of one kind",
			plans, whole, shed, refused)
	}
}

// canServe reports whether every stage can be served by some worker that is not down.
func canServe(r plan.Request, p *proteus.Planner) bool {
	down, broken := capacity.Unusable(r.Spec, r.Snapshot)
	rule, ask := capacity.BatchRule{Batches: p.Options.Batches}, capacity.StageDemands(r.Spec, r.Rates)
	for s, st := range r.Spec.Stages {
		found := false
		for _, v := range st.Variants {
			for w, x := range r.Spec.Workers {
				limit, _ := rule.Capacity(p.Profile, r.Spec, v, x.DeviceType, ask[s].Budget)
				found = found || limit > 0 && !down[w] && !broken[v]
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// checkPlan recomputes the forecast of a plan. It reports whether the plan serves all of its demand and is proven.
func checkPlan(t *testing.T, at string, r plan.Request, p *proteus.Planner, got *plan.Plan) bool {
	t.Helper()
	same := func(what string, x, y float64) {
		t.Helper()
		if !(math.Abs(x-y) <= 1e-5*(1e-3+math.Abs(y))) {
			t.Fatalf("%s: %s is %v, want %v", at, what, x, y)
		}
	}
	spec, o := r.Spec, p.Options
	rule, ask := capacity.BatchRule{Batches: o.Batches}, capacity.StageDemands(spec, r.Rates)
	down, broken := capacity.Unusable(spec, r.Snapshot)
	before := capacity.RunningByWorker(r.Snapshot)
	stages := len(spec.Stages)
	carries, shares, right, normal, able := make([]float64, stages), make([]float64, stages), make([]float64, stages),
		make([]float64, stages), make([]float64, stages)
	for s := range able {
		able[s] = math.Inf(1)
	}
	used := make(map[serving.WorkerID]bool)
	cost, loads := 0.0, 0
	rates := make([]float64, len(got.Instances))
	for n, i := range got.Instances {
		v, d := i.Variants[0].Variant, spec.Workers[i.Worker].DeviceType
		x := &spec.Variants[v]
		limit, rate := rule.Capacity(p.Profile, spec, v, d, ask[i.Stage].Budget)
		if used[i.Worker] || down[i.Worker] || broken[v] || limit == 0 || i.Variants[0].Limit != limit {
			t.Fatalf("%s: %+v: worker used twice %v, down %v, variant broken %v, limit should be %d", at, i,
				used[i.Worker], down[i.Worker], broken[v], limit)
		}
		if x.Accuracy < spec.Apps[spec.Stages[i.Stage].App].Floor ||
			x.MemoryBytes+int64(limit)*x.ItemBytes > spec.DeviceTypes[d].MemoryBytes {
			t.Fatalf("%s: %+v: accuracy %v below the floor, or does not fit", at, i, x.Accuracy)
		}
		used[i.Worker] = true
		rates[n] = rate
		want := ask[i.Stage].Budget - p.Profile.Latency(v, d, limit, 1)
		if (i.BatchTimeout - want).Abs() > time.Microsecond {
			t.Fatalf("%s: hold %v, want %v", at, i.BatchTimeout, want)
		}
		carries[i.Stage] += rate
		shares[i.Stage] += i.Share
		right[i.Stage] += i.Share * x.Accuracy
		normal[i.Stage] += i.Share * ask[i.Stage].NormalizedAccuracy(x)
		if i.Share > 0 {
			able[i.Stage] = min(able[i.Stage], rate/i.Share)
		}
		cost += spec.DeviceTypes[d].PricePerHour
		b, ok := before[i.Worker]
		if hosted, warm := capacity.HostedVariant(b); !ok || !warm || hosted != v {
			loads++
		}
	}
	demand, served := make([]float64, stages), make([]float64, stages) // items/s; demand with head-room
	for s := range demand {
		asked := max(ask[s].Rate, capacity.MinRate)
		app := ask[s].App
		demand[s] = asked * got.Demand[app] / max(r.Rates[app], capacity.MinRate)
		served[s] = min(carries[s], demand[s])
		if o.Goal == proteus.Throughput {
			served[s] = carries[s]
		}
		if carries[s] > 0 {
			same(fmt.Sprintf("sum of shares of stage %d", s), shares[s], 1)
		}
	}
	for n, i := range got.Instances {
		if load := i.Share * min(served[i.Stage], demand[i.Stage]); load > rates[n]*(1+1e-6) {
			t.Fatalf("%s: instance %+v gets %v/s and carries %v/s", at, i, load, rates[n])
		}
	}
	var accuracy, queries, throughput, mean, weight float64
	worst, all := 1.0, true
	for a, app := range spec.Apps {
		most, fraction, good := math.Inf(1), 1.0, 1.0
		for _, s := range app.Stages {
			if served[s] < demand[s]*(1-1e-6) {
				all = false
			}
			w := app.Weight / float64(len(app.Stages)) * min(served[s], demand[s])
			if ask[s].FanOut > 0 {
				most = min(most, able[s]/ask[s].FanOut)
				fraction = min(fraction, served[s]/max(ask[s].Rate, capacity.MinRate))
				good *= right[s]
				w *= ask[s].Rate / ask[s].FanOut / max(ask[s].Rate, capacity.MinRate)
			}
			mean += w * normal[s]
			weight += w
			worst = min(worst, normal[s])
		}
		if math.IsInf(most, 1) {
			most = 0
		}
		same(app.Name+": capacity", got.Capacity[a], most)
		if got.Demand[a] < max(r.Rates[a], capacity.MinRate)*o.Headroom*(1-1e-9) {
			t.Fatalf("%s: demand %v is below %v with head-room %v", at, got.Demand[a], r.Rates[a], o.Headroom)
		}
		rate := max(r.Rates[a], capacity.MinRate)
		left := 0.0
		if got.Shed != nil {
			left = got.Shed[a]
		}
		if math.Abs(left-rate*(1-fraction)) > 2e-6*rate {
			t.Fatalf("%s: %s sheds %v of %v, want %v", at, app.Name, left, rate, rate*(1-fraction))
		}
		accuracy += rate * fraction * good
		queries += rate * fraction
		throughput += most
	}
	same("throughput", got.Forecast.Throughput, throughput)
	same("cost", got.Forecast.CostPerHour, cost)
	same("loads", float64(got.Loads), float64(loads))
	if queries > 0 {
		same("accuracy", got.Forecast.Accuracy, accuracy/queries)
	}
	if !got.Proven {
		return false
	}
	if !(got.Bound >= 0) || !(got.Gap >= 0) || math.IsInf(got.Bound, 0) || math.IsInf(got.Gap, 0) {
		t.Fatalf("%s: bound %v, gap %v", at, got.Bound, got.Gap)
	}
	value := 0.0
	switch o.Goal {
	case proteus.Accuracy:
		value = mean / weight
	case proteus.Fairness:
		value = worst + 0.001*mean/weight
	case proteus.Blend:
		value = 0.5*worst + 0.5*mean/weight
	case proteus.Throughput:
		value = math.Inf(1)
		for s := range demand {
			value = min(value, carries[s]/demand[s])
		}
	}
	if all || o.Goal == proteus.Throughput {
		same("bound by the gap", got.Bound/(1+got.Gap), value)
		return true
	}
	return false
}
