// Package simtest makes random clusters and loads for tests from random sources that are passed in.
package simtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Cluster is a world with a plan for it.
type Cluster struct {
	Spec         *serving.Spec
	Measurements serving.Measurements
	Profile      *profile.Table
	Plan         *plan.Plan
	Planner      *Planner
	// Carries is about what the cluster serves, in queries/s; 0 where it is not known.
	Carries float64
}

// Uniform returns a cluster of n instances, one per worker of one type, of one app with one variant whose batch of b
// items takes base + b*perItem, for an SLO.
func Uniform(n int, base, perItem, slo time.Duration, maxBatch int) *Cluster {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "cpu", PricePerHour: 1, Cores: 1}},
		Apps: []serving.App{
			{
				Name: "app", SLO: serving.SLO{Latency: slo, Percentile: 99}, Weight: 1, QueueLimit: 1 << 20,
				Stages: []serving.StageID{0},
			},
		},
		Stages:   []serving.Stage{{Name: "app", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "model", Accuracy: 0.9, MaxBatch: maxBatch}},
	}
	var place []static.Instance
	for i := range n {
		spec.Workers = append(spec.Workers, serving.Worker{Name: fmt.Sprintf("w%d", i)})
		place = append(place, static.Instance{Worker: serving.WorkerID(i), Variants: []serving.VariantID{0}})
	}
	var m serving.Measurements
	for b := 1; b <= maxBatch; b++ {
		m.Latency = append(m.Latency, Point(0, 0, b, 1, base+time.Duration(b)*perItem, 0))
	}
	return build(spec, m, place)
}

// Typed returns a cluster like Uniform's with several device types: counts[d] instances of type d, on which b items
// take latency[d][0] + b*latency[d][1], up to maxBatch at once whatever the objective.
func Typed(counts []int, latency [][2]time.Duration, slo time.Duration, maxBatch int) *Cluster {
	spec := &serving.Spec{
		Apps: []serving.App{
			{
				Name: "app", SLO: serving.SLO{Latency: slo, Percentile: 99}, Weight: 1, QueueLimit: 1 << 20,
				Stages: []serving.StageID{0},
			},
		},
		Stages:   []serving.Stage{{Name: "app", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "model", Accuracy: 0.9, MaxBatch: maxBatch}},
	}
	var place []static.Instance
	var m serving.Measurements
	for d, n := range counts {
		spec.DeviceTypes = append(spec.DeviceTypes, serving.DeviceType{
			Name: fmt.Sprintf("d%d", d), PricePerHour: 1, Cores: 1,
		})
		for range n {
			w := serving.WorkerID(len(spec.Workers))
			spec.Workers = append(spec.Workers, serving.Worker{
				Name: fmt.Sprintf("w%d", w), DeviceType: serving.DeviceTypeID(d),
			})
			place = append(place, static.Instance{Worker: w, Variants: []serving.VariantID{0}, Limit: maxBatch})
		}
		for _, b := range []int{1, maxBatch} {
			m.Latency = append(m.Latency, Point(0, serving.DeviceTypeID(d), b, 1,
				latency[d][0]+time.Duration(b)*latency[d][1], 0))
		}
	}
	return build(spec, m, place)
}

// Point is a measurement with the given mean and deviation; percentiles are as of a normal distribution.
func Point(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int, mean,
	dev time.Duration) serving.LatencyPoint {
	at := func(z float64) time.Duration { return mean + time.Duration(z*float64(dev)) }
	return serving.LatencyPoint{Variant: v, DeviceType: d, Items: items, Concurrency: concurrency, Samples: 100,
		Mean: mean, StdDev: dev,
		P50: mean, P90: at(1.2816), P95: at(1.6449), P99: at(2.3263)}
}

func build(spec *serving.Spec, m serving.Measurements, place []static.Instance) *Cluster {
	p, err := profile.NewTable(spec, m, profile.P95)
	if err != nil {
		panic(err)
	}
	c := &Cluster{
		Spec: spec, Measurements: m, Profile: p, Planner: &Planner{static.Planner{Profile: p, Instances: place}},
	}
	if c.Plan, err = c.Planner.Plan(context.Background(), plan.Request{Spec: spec}); err != nil {
		panic(err)
	}
	return c
}

// Random returns a cluster of 1 to 3 apps (some of several stages with branches and joins), 1 to 3 device types,
// several variants and slots, drop or serve-late, in every other one parts of machines, and in every other one stateful
// stages, and in many variants that know how sure they are.
func Random(rng *rand.Rand) *Cluster {
	r := &randomCluster{rng: rng, spec: &serving.Spec{}}
	for d := range 1 + rng.IntN(3) {
		r.spec.DeviceTypes = append(r.spec.DeviceTypes, serving.DeviceType{
			Name: fmt.Sprintf("d%d", d), PricePerHour: rng.Float64(), Cores: 1 + rng.IntN(4),
		})
	}
	for a := range 1 + rng.IntN(3) {
		r.addApp(a)
	}
	setFloors(r.spec, r.placement)
	addParts(r.spec, &r.measurements)
	makeStateful(r.spec, &r.measurements)
	makeConfident(r.spec, &r.measurements)
	return build(r.spec, r.measurements, r.placement)
}

// randomCluster is a random cluster while it is made.
type randomCluster struct {
	rng          *rand.Rand
	spec         *serving.Spec
	measurements serving.Measurements
	placement    []static.Instance
}

// addApp adds app number a with its stages.
func (r *randomCluster) addApp(a int) {
	app := serving.App{
		Name: fmt.Sprintf("app%d", a), Weight: 1, QueueLimit: 5 + r.rng.IntN(200),
		Late:     serving.LatePolicy(r.rng.IntN(2)),
		SLO:      serving.SLO{Latency: time.Duration(50+r.rng.IntN(400)) * time.Millisecond, Percentile: 99},
		ColdWait: time.Duration(a) * 700 * time.Millisecond,
	}
	stages := 1
	if r.rng.IntN(3) == 0 {
		stages = 2 + r.rng.IntN(3)
		app.SLO.Latency *= 4
	}
	first := len(r.spec.Stages)
	for s := range stages {
		id := serving.StageID(len(r.spec.Stages))
		st := serving.Stage{Name: fmt.Sprintf("app%d.%d", a, s), App: serving.AppID(a)}
		for v := range 1 + r.rng.IntN(3) {
			vid := r.addVariant(fmt.Sprintf("%s.v%d", st.Name, v), id)
			st.Variants = append(st.Variants, vid)
		}
		if s > 0 {
			st.Joins = r.feed(id, first, s)
		}
		r.spec.Stages = append(r.spec.Stages, st)
		app.Stages = append(app.Stages, id)
		for range 1 + r.rng.IntN(3) {
			r.addInstance(id)
		}
	}
	r.spec.Apps = append(r.spec.Apps, app)
}

// addVariant adds a variant of a stage, with latencies and load times on all device types.
func (r *randomCluster) addVariant(name string, s serving.StageID) serving.VariantID {
	id := serving.VariantID(len(r.spec.Variants))
	r.spec.Variants = append(r.spec.Variants, serving.Variant{
		Name: name, Stage: s, Accuracy: 0.5 + 0.5*r.rng.Float64(), MaxBatch: 1 + r.rng.IntN(16),
	})
	m := &r.measurements
	for d := range r.spec.DeviceTypes {
		base := time.Duration(200+r.rng.IntN(8000)) * time.Microsecond
		per := time.Duration(50+r.rng.IntN(1500)) * time.Microsecond
		for c := 1; c <= 2; c++ {
			for b := 1; b <= 16; b *= 2 {
				mean := (base + time.Duration(b)*per) * time.Duration(c+1) / 2
				deviation := mean / time.Duration(5+r.rng.IntN(40))
				m.Latency = append(m.Latency, Point(id, serving.DeviceTypeID(d), b, c, mean, deviation))
			}
		}
		m.Load = append(m.Load, serving.LoadPoint{
			Variant: id, DeviceType: serving.DeviceTypeID(d),
			Load: time.Duration(1+r.rng.IntN(300)) * time.Millisecond,
		})
	}
	return id
}

// feed adds edges to a stage from one of the n stages from first on, sometimes from two: a join. It returns their
// number.
func (r *randomCluster) feed(to serving.StageID, first, n int) int {
	from := []int{first + r.rng.IntN(n)}
	if n > 1 && r.rng.IntN(2) == 0 && first != from[0] {
		from = append(from, first)
	}
	for _, f := range from {
		r.spec.Stages[f].Next = append(r.spec.Stages[f].Next, serving.Edge{
			To: to, FanOut: []float64{0, 0.5, 1, 1, 2.5, 7}[r.rng.IntN(6)],
		})
	}
	return len(from)
}

// addInstance places some variants of a stage on a new worker, or on the last one.
func (r *randomCluster) addInstance(s serving.StageID) {
	rng := r.rng
	w := serving.WorkerID(len(r.spec.Workers))
	if w > 0 && rng.IntN(3) == 0 {
		w--
	} else {
		r.spec.Workers = append(r.spec.Workers, serving.Worker{
			Name: fmt.Sprintf("w%d", w), DeviceType: serving.DeviceTypeID(rng.IntN(len(r.spec.DeviceTypes))),
		})
	}
	i := static.Instance{Worker: w, Stage: s, Slots: 1 + rng.IntN(2), Share: float64(rng.IntN(3))}
	i.Variants = append(i.Variants, r.spec.Stages[s].Variants...)
	rng.Shuffle(len(i.Variants), func(x, y int) { i.Variants[x], i.Variants[y] = i.Variants[y], i.Variants[x] })
	i.Variants = i.Variants[:1+rng.IntN(len(i.Variants))]
	r.placement = append(r.placement, i)
}

// setFloors gives every other app an accuracy floor that some of its placed variants miss, and some of every stage
// reach.
func setFloors(spec *serving.Spec, place []static.Instance) {
	for a := 1; a < len(spec.Apps); a += 2 {
		floor := 1.0
		for _, s := range spec.Apps[a].Stages {
			best := 0.0
			for _, i := range place {
				for _, v := range i.Variants {
					if i.Stage == s {
						best = max(best, spec.Variants[v].Accuracy)
					}
				}
			}
			floor = min(floor, best)
		}
		spec.Apps[a].Floor = floor
	}
}

// Load returns a random bursty load of about n queries for the cluster: ties in time, several items, priorities, own
// deadlines, accuracy floors and pinned variants.
func (c *Cluster) Load(rng *rand.Rand, n int) []workload.Arrival {
	var out []workload.Arrival
	at := serving.Time(0)
	gap := time.Duration(100+rng.IntN(20000)) * time.Microsecond
	for range n {
		if rng.IntN(4) > 0 {
			at += serving.Time(rng.ExpFloat64() * float64(gap) / 1000 * 1000)
		}
		a := workload.Arrival{
			At: at / 1000 * 1000, App: serving.AppID(rng.IntN(len(c.Spec.Apps))), Items: 1, Variant: serving.None,
			Sample: -1,
		}
		switch rng.IntN(12) {
		case 0:
			a.Items = 1 + rng.Int32N(20)
		case 1:
			a.Priority = 1 + rng.Int32N(3)
		case 2:
			a.Timeout = time.Duration(rng.IntN(300)+1) * time.Millisecond
		case 3:
			a.MinAccuracy = rng.Float64()
		case 4:
			s := c.Spec.Stages[c.Spec.Source(a.App)]
			a.Variant = s.Variants[rng.IntN(len(s.Variants))]
		}
		out = append(out, a)
	}
	c.assignStreams(out)
	return out
}
