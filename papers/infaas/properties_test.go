package infaas

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Plans over random clusters, one after the other while demand varies, workers fail, variants break and queues fill.
// Each keeps the rules, its forecast agrees with values recomputed here from its instances, and the same request gives
// the same plan.
func TestPlansAreSound(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := simtest.Random(rng)
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
			c.Spec.DeviceTypes[d].MemoryBytes = int64(rng.IntN(60))
		}
		p := &Planner{Profile: c.Profile, Options: Options{Oddities: seed%3 == 0}}
		if rng.IntN(2) == 0 {
			p.Options.Batches = []int{1, 2, 4, 8}
		}
		r := plan.Request{Spec: c.Spec, Rates: make([]float64, len(c.Spec.Apps))}
		for round := range 6 {
			for a := range r.Rates {
				r.Rates[a] = math.Exp(8*rng.Float64() - 1)
			}
			got, err := p.Plan(t.Context(), r)
			if err != nil {
				if servable(r, p) {
					t.Fatalf("seed %d: %v", seed, err)
				}
				break
			}
			if again, _ := p.Plan(t.Context(), r); !reflect.DeepEqual(got, again) {
				t.Fatalf("seed %d: a second plan for the same request is another", seed)
			}
			if err := got.Validate(c.Spec); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			checkFigures(t, seed, r, p, got)
			r.Snapshot = running(got, serving.Time(round+1)*4e9)
			for i := range r.Snapshot.Instances {
				r.Snapshot.Instances[i].Queued = rng.IntN(30)
			}
			if rng.IntN(3) == 0 {
				r.Snapshot.Down = append(r.Snapshot.Down, serving.WorkerID(rng.IntN(len(c.Spec.Workers))))
			}
			if rng.IntN(4) == 0 {
				r.Snapshot.Broken = append(r.Snapshot.Broken, serving.VariantID(rng.IntN(len(c.Spec.Variants))))
			}
		}
	}
}

// servable reports whether some worker that is up can serve every stage.
func servable(r plan.Request, p *Planner) bool {
	down, broken := capacity.Unusable(r.Spec, r.Snapshot)
	for _, st := range r.Spec.Stages {
		found := false
		for _, v := range st.Variants {
			for w := range r.Spec.Workers {
				found = found || !down[w] && !broken[v] && carried(r.Spec, p.Profile, p.Options.Batches, v,
					serving.WorkerID(w)) > 0
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// checkFigures recomputes the forecast of a plan.
func checkFigures(t *testing.T, seed uint64, r plan.Request, p *Planner, got *plan.Plan) {
	t.Helper()
	spec := r.Spec
	down, broken := capacity.Unusable(spec, r.Snapshot)
	before := capacity.RunningByWorker(r.Snapshot)
	able, shares, right := make([]float64, len(spec.Stages)), make([]float64, len(spec.Stages)),
		make([]float64, len(spec.Stages))
	used := make(map[serving.WorkerID]bool)
	cost, loads := 0.0, 0
	for _, i := range got.Instances {
		v := i.Variants[0].Variant
		rate := carried(spec, p.Profile, p.Options.Batches, v, i.Worker)
		if used[i.Worker] || down[i.Worker] || broken[v] || rate == 0 {
			t.Fatalf("seed %d: instance %+v: worker used twice %v, down %v, variant broken %v, carries %v", seed, i,
				used[i.Worker], down[i.Worker], broken[v], rate)
		}
		used[i.Worker] = true
		d := spec.Workers[i.Worker].DeviceType
		run := p.Profile.Latency(v, d, i.Variants[0].Limit, 1)
		if got := float64(i.Variants[0].Limit) / run.Seconds(); math.Abs(got-rate) > 1e-6*rate {
			t.Fatalf("seed %d: a limit of %d carries %v, want %v", seed, i.Variants[0].Limit, got, rate)
		}
		within := capacity.StageDemands(spec, nil)[i.Stage].Budget
		if want := within - run; (i.BatchTimeout - want).Abs() > time.Microsecond {
			t.Fatalf("seed %d: hold %v, want %v", seed, i.BatchTimeout, want)
		}
		able[i.Stage] += rate
		shares[i.Stage] += i.Share
		right[i.Stage] += i.Share * spec.Variants[v].Accuracy
		cost += spec.DeviceTypes[d].PricePerHour
		b, ok := before[i.Worker]
		if hosted, warm := capacity.HostedVariant(b); !ok || !warm || hosted != v {
			loads++
		}
	}
	for _, i := range got.Instances {
		if rate := carried(spec, p.Profile, p.Options.Batches, i.Variants[0].Variant,
			i.Worker); math.Abs(i.Share*able[i.Stage]-rate) > 1e-6*rate {
			t.Fatalf("seed %d: share %v of %v/s, the instance carries %v/s", seed, i.Share, able[i.Stage], rate)
		}
	}
	close := func(what string, x, y float64) {
		t.Helper()
		if !(math.Abs(x-y) <= 1e-6*(1+math.Abs(y))) {
			t.Fatalf("seed %d: %s is %v, want %v", seed, what, x, y)
		}
	}
	var served, accuracy, throughput float64
	headroom := p.Options.filled().Headroom
	for a, app := range spec.Apps {
		carries, good := math.Inf(1), 1.0
		for s, asked := range capacity.StageDemands(spec, r.Rates) {
			if asked.App == serving.AppID(a) && asked.FanOut > 0 {
				carries = min(carries, able[s]/asked.FanOut)
				good *= right[s]
			}
		}
		close(app.Name+": capacity", got.Capacity[a], carries)
		close(app.Name+": demand", got.Demand[a], r.Rates[a]*headroom)
		shed := 0.0
		if got.Shed != nil {
			shed = got.Shed[a]
		}
		close(app.Name+": shed", shed, max(0, r.Rates[a]-carries))
		served += min(carries, r.Rates[a])
		accuracy += min(carries, r.Rates[a]) * good
		throughput += carries
	}
	close("throughput", got.Forecast.Throughput, throughput)
	if served > 0 {
		close("accuracy", got.Forecast.Accuracy, accuracy/served)
	}
	close("cost", got.Forecast.CostPerHour, cost)
	close("loads", float64(got.Loads), float64(loads))
}

// Under a steady demand the placement settles: the first plan for it is the last.
func TestSteadyDemandLoadsNothing(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		spec, believed := random(rng, 1+rng.IntN(4), 3+rng.IntN(10)).build()
		p := &Planner{Profile: believed}
		r := plan.Request{Spec: spec, Rates: make([]float64, len(spec.Apps))}
		draw := func() {
			for a := range r.Rates {
				r.Rates[a] = math.Exp(5 * rng.Float64())
			}
		}
		draw()
		first, err := p.Plan(t.Context(), r)
		if err != nil {
			continue // a stage that no worker here can serve
		}
		r.Snapshot = running(first, 0)
		for range 3 {
			draw()
			r.Snapshot = running(must(t, p, r), 0)
			if settled := must(t, p, r); settled.Loads != 0 || len(settled.Instances) != len(r.Snapshot.Instances) {
				t.Fatalf("seed %d: a second plan for the same demand loads %d variants and runs %d instances instead "+
					"of %d",
					seed, settled.Loads, len(settled.Instances), len(r.Snapshot.Instances))
			}
		}
	}
}

// Every app keeps an instance whenever there is a way to give each app one. All ways are tried.
func TestNoAppIsLost(t *testing.T) {
	tight := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 3))
		apps := 2 + rng.IntN(3)
		w := random(rng, apps, apps+rng.IntN(2))
		for a := range w.apps { // device types on which an app cannot run at all make it hard
			for d := range w.workers {
				if d < len(w.apps[a][0].ms) && rng.IntN(2) == 0 {
					for o := range w.apps[a] {
						w.apps[a][o].ms[d] = 0
					}
				}
			}
		}
		spec, believed := w.build()
		r := plan.Request{Spec: spec, Rates: make([]float64, apps), Snapshot: &fleet.Snapshot{}}
		var now []int
		for range spec.Workers {
			now = append(now, rng.IntN(len(spec.Variants)+1)-1)
		}
		r.Snapshot = hosting(spec, now...)
		for a := range r.Rates {
			r.Rates[a] = math.Exp(6 * rng.Float64())
		}
		p := &Planner{Profile: believed}
		got, err := p.Plan(t.Context(), r)
		if err != nil {
			if servable(r, p) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			continue
		}
		if !coverable(spec, p, 0, make([]bool, len(spec.Workers))) {
			continue
		}
		if len(spec.Workers) == apps {
			tight++
		}
		for a, able := range got.Capacity {
			if able <= 0 {
				t.Fatalf("seed %d: app %d of %d has no instance: %v -> %v", seed, a, apps, now, hosts(spec, got))
			}
		}
	}
	if tight < 20 {
		t.Errorf("only %d of the cases had one worker for each app", tight)
	}
}

// coverable reports whether the apps from a on can each have a worker that is not taken.
func coverable(spec *serving.Spec, p *Planner, a int, taken []bool) bool {
	if a == len(spec.Apps) {
		return true
	}
	for w := range taken {
		if taken[w] {
			continue
		}
		for _, v := range spec.Stages[a].Variants {
			if carried(spec, p.Profile, nil, v, serving.WorkerID(w)) > 0 {
				taken[w] = true
				ok := coverable(spec, p, a+1, taken)
				taken[w] = false
				if ok {
					return true
				}
				break
			}
		}
	}
	return false
}

// A single app is carried whenever its fastest variants on all workers carry it, whatever runs.
func TestOneAppIsCarried(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 4))
		spec, believed := random(rng, 1, 1+rng.IntN(8)).build()
		p := &Planner{Profile: believed}
		fastest := 0.0
		for w := range spec.Workers {
			most := 0.0
			for v := range spec.Variants {
				most = max(most, carried(spec, believed, nil, serving.VariantID(v), serving.WorkerID(w)))
			}
			fastest += most
		}
		if fastest == 0 {
			continue
		}
		var now []int
		for range spec.Workers {
			now = append(now, rng.IntN(len(spec.Variants)+1)-1)
		}
		headroom := p.Options.filled().Headroom
		for _, part := range []float64{0.1, 0.5, 0.9, 1, 1.5} {
			r := plan.Request{Spec: spec, Rates: []float64{fastest * part / headroom}, Snapshot: hosting(spec, now...)}
			got := must(t, p, r)
			if want := min(part, 1) * fastest; got.Capacity[0] < want*(1-1e-6) {
				t.Fatalf("seed %d: capacity %v for a demand of %v, all on their fastest variants carry %v; %v -> %v",
					seed, got.Capacity[0], fastest*part, fastest, now, hosts(spec, got))
			}
		}
	}
}
