package test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/papers/proteus"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// planWorld is apps of one stage on workers that take single items: everything a plan depends on as plain numbers, so
// that a test can try all plans without the planner's own arithmetic.
type planWorld struct {
	spec    *serving.Spec
	profile *profile.Table
	rate    [][]float64 // items/s by variant and device type; 0 where it cannot be planned
}

// randomPlanWorld draws device types, workers and apps. More accurate variants are slower, not by the same factor
// everywhere; some are too slow for the objective on some device types.
func randomPlanWorld(rng *rand.Rand, devices, workers, apps int) planWorld {
	var w planWorld
	w.spec = &serving.Spec{}
	for d := range devices {
		w.spec.DeviceTypes = append(w.spec.DeviceTypes, serving.DeviceType{
			Name: fmt.Sprintf("d%d", d), Cores: 1, PricePerHour: 1,
		})
	}
	for n := range workers {
		w.spec.Workers = append(w.spec.Workers, serving.Worker{
			Name: fmt.Sprintf("w%d", n), DeviceType: serving.DeviceTypeID(rng.IntN(devices)),
		})
	}
	var offered [][]handOffer
	took := make([][][]time.Duration, apps)
	for a := range apps {
		var offers []handOffer
		accuracy, ms := 0.5+0.2*rng.Float64(), 5+20*rng.Float64()
		for n := range 2 + rng.IntN(3) {
			offers = append(offers, handOffer{accuracy, ms})
			on := make([]time.Duration, devices)
			for d := range devices {
				on[d] = time.Duration(ms * (0.5 + rng.Float64()) * 1e6)
				if n == 0 { // runs everywhere, so that every world can be planned for
					on[d] = min(on[d], planWithin/2-1e6)
				}
			}
			took[a] = append(took[a], on)
			accuracy = min(1, accuracy+0.15*rng.Float64())
			ms *= 1 + 1.5*rng.Float64()
		}
		offered = append(offered, offers)
	}
	w.fill(offered, took)
	return w
}

// handOffer is a variant's accuracy and its latency for one item in ms.
type handOffer struct{ accuracy, ms float64 }

// handMade is workers of one device type and apps with variants.
func handMade(workers int, apps [][]handOffer) planWorld {
	w := planWorld{spec: &serving.Spec{DeviceTypes: []serving.DeviceType{{Name: "d", Cores: 1}}}}
	for n := range workers {
		w.spec.Workers = append(w.spec.Workers, serving.Worker{Name: fmt.Sprintf("w%d", n)})
	}
	took := make([][][]time.Duration, len(apps))
	for a, offers := range apps {
		for _, o := range offers {
			took[a] = append(took[a], []time.Duration{time.Duration(o.ms * 1e6)})
		}
	}
	w.fill(apps, took)
	return w
}

// planWithin is the objective of every app: half of it, less a nanosecond, is the longest that a batch may take.
const planWithin = 200 * time.Millisecond

// fill adds apps with variants that take so long by device type.
func (w *planWorld) fill(apps [][]handOffer, took [][][]time.Duration) {
	var m serving.Measurements
	for a, offers := range apps {
		s, name := serving.StageID(a), fmt.Sprintf("a%d", a)
		st := serving.Stage{Name: name, App: serving.AppID(a)}
		for n, o := range offers {
			v := serving.VariantID(len(w.spec.Variants))
			st.Variants = append(st.Variants, v)
			w.spec.Variants = append(w.spec.Variants, serving.Variant{
				Name: fmt.Sprintf("%s.v%d", name, n), Stage: s, Accuracy: o.accuracy, MaxBatch: 1,
			})
			rates := make([]float64, len(took[a][n]))
			for d, l := range took[a][n] {
				if l < planWithin/2 {
					rates[d] = 1 / l.Seconds()
				}
				m.Latency = append(m.Latency, serving.LatencyPoint{
					Variant: v, DeviceType: serving.DeviceTypeID(d), Items: 1, Concurrency: 1, Mean: l, P50: l, P90: l,
					P95: l, P99: l,
				})
			}
			w.rate = append(w.rate, rates)
		}
		w.spec.Stages = append(w.spec.Stages, st)
		w.spec.Apps = append(w.spec.Apps, serving.App{
			Name: name, Weight: 1, QueueLimit: 100, SLO: serving.SLO{Latency: planWithin, Percentile: 99},
			Stages: []serving.StageID{s},
		})
	}
	err := w.spec.Validate()
	if err == nil {
		w.profile, err = profile.NewTable(w.spec, m, profile.P50)
	}
	if err != nil {
		panic(err)
	}
}

// on is what a worker carries of a variant, items/s.
func (w planWorld) on(v, worker int) float64 { return w.rate[v][w.spec.Workers[worker].DeviceType] }

// value is a variant's accuracy divided by the best of its app.
func (w planWorld) value(v int) float64 {
	best := 0.0
	for _, o := range w.spec.Stages[w.spec.Variants[v].Stage].Variants {
		best = max(best, w.spec.Variants[o].Accuracy)
	}
	return w.spec.Variants[v].Accuracy / best
}

// most is the rate in items/s that an app has with every worker on its fastest variant.
func (w planWorld) most(app int) float64 {
	sum := 0.0
	for n := range w.spec.Workers {
		fastest := 0.0
		for _, v := range w.spec.Stages[app].Variants {
			fastest = max(fastest, w.on(int(v), n))
		}
		sum += fastest
	}
	return sum
}

// demands draws rates that take about the given part of the fleet on the fastest variants.
func (w planWorld) demands(rng *rand.Rand, load float64) []float64 {
	out, sum := make([]float64, len(w.spec.Apps)), 0.0
	for a := range out {
		out[a] = 0.1 + rng.Float64()
		sum += out[a]
	}
	for a := range out {
		out[a] *= load * w.most(a) / sum
	}
	return out
}

// assignments calls f with every way to give each worker a variant or none (-1); f must not keep its argument.
func (w planWorld) assignments(f func(hosts []int)) {
	hosts := make([]int, len(w.spec.Workers))
	var next func(n int)
	next = func(n int) {
		if n == len(hosts) {
			f(hosts)
			return
		}
		for v := -1; v < len(w.spec.Variants); v++ {
			if v >= 0 && w.on(v, n) == 0 {
				continue
			}
			hosts[n] = v
			next(n + 1)
		}
	}
	next(0)
}

// served returns how much of each app's demand is served by an assignment in items/s, and the sum of the values of what
// is: the best a router can do is to fill the most accurate workers first.
func (w planWorld) served(hosts []int, demand []float64) (items, values []float64) {
	items, values = make([]float64, len(demand)), make([]float64, len(demand))
	for a, left := range demand {
		used := make([]bool, len(hosts))
		for left > 0 {
			best := -1
			for n, v := range hosts {
				if v >= 0 && !used[n] && int(w.spec.Variants[v].Stage) == a &&
					(best < 0 || w.value(v) > w.value(hosts[best])) {
					best = n
				}
			}
			if best < 0 {
				break
			}
			used[best] = true
			part := min(left, w.on(hosts[best], best))
			items[a] += part
			values[a] += part * w.value(hosts[best])
			left -= part
		}
	}
	return items, values
}

// fully reports whether all of the demand is served.
func (w planWorld) fully(items, demand []float64) bool {
	for a := range demand {
		if items[a] < demand[a]*(1-1e-9) {
			return false
		}
	}
	return true
}

// mean is the mean normalised accuracy, by the apps' weights, when the demand is served with the sums of values.
func (w planWorld) mean(values, demand []float64) float64 {
	sum, all := 0.0, 0.0
	for a := range demand {
		sum += w.spec.Apps[a].Weight * values[a]
		all += w.spec.Apps[a].Weight * demand[a]
	}
	return sum / all
}

// everything is a demand of an app that no fleet here carries, and none of the others.
func (w planWorld) everything(app int) []float64 {
	out := make([]float64, len(w.spec.Apps))
	out[app] = 1e9
	return out
}

// inForce is a snapshot in which a plan is in force.
func inForce(p *plan.Plan) *fleet.Snapshot {
	out := &fleet.Snapshot{Seq: p.Snapshot + 1}
	for n, i := range p.Instances {
		out.Instances = append(out.Instances, fleet.InstanceSnapshot{ID: serving.InstanceID(n + 1),
			Key:   fleet.Key{Worker: i.Worker, Ordinal: i.Place},
			Stage: i.Stage, State: fleet.Ready, Slots: 1, Share: i.Share, Variants: []fleet.Loaded{
				{Variant: i.Variants[0].Variant, Limit: i.Variants[0].Limit, Warm: true, Wanted: true},
			}})
	}
	return out
}

// hostsOf is what a plan has the workers host, -1 for nothing.
func hostsOf(spec *serving.Spec, p *plan.Plan) []int {
	out := make([]int, len(spec.Workers))
	for w := range out {
		out[w] = -1
	}
	for _, i := range p.Instances {
		out[i.Worker] = int(i.Variants[0].Variant)
	}
	return out
}

// accuracies are the normalised accuracies of a plan by stage, by its shares; NaN where a stage has none.
func accuracies(spec *serving.Spec, p *plan.Plan) []float64 {
	out, shares := make([]float64, len(spec.Stages)), make([]float64, len(spec.Stages))
	for _, i := range p.Instances {
		v := &spec.Variants[i.Variants[0].Variant]
		out[i.Stage] += i.Share * capacity.StageDemands(spec, nil)[i.Stage].NormalizedAccuracy(v)
		shares[i.Stage] += i.Share
	}
	for s := range out {
		out[s] /= shares[s]
	}
	return out
}

// planned makes a plan and checks it against the rules of plans.
func planned(t testing.TB, what string, p *proteus.Planner, r plan.Request) *plan.Plan {
	t.Helper()
	out, err := p.Plan(context.Background(), r)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := out.Validate(r.Spec); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return out
}

// within reports whether two numbers are equal within the solver's own tolerances.
func within(x, y float64) bool { return math.Abs(x-y) <= 2e-6*max(1, math.Abs(x), math.Abs(y)) }
