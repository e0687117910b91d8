package ruletest

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
	"github.com/sluice-serving/sluice/serving/profile"
)

// ViewOf is a router's view of a fleet at the start of a run.
func ViewOf(f *fleet.Fleet) *route.View { return ViewAt(f, 0) }

// ViewAt is a view at a time.
func ViewAt(f *fleet.Fleet, now serving.Time) *route.View {
	return ViewWith(f, now, nil, monitor.NewRates(1))
}

// ViewWith is a view with a plan in force and the demand seen.
func ViewWith(f *fleet.Fleet, now serving.Time, p *plan.Plan, m *monitor.Rates) *route.View {
	v := &route.View{}
	v.Open(f, &m.View)
	v.Begin(now, 0, p)
	return v
}

// Lengths are how many queries wait at each ready instance of the first stage.
func Lengths(f *fleet.Fleet) []int {
	var out []int
	for _, i := range f.Ready(0) {
		out = append(out, i.Queue().Len())
	}
	return out
}

// Pool is a fleet of ready instances with the given shares, all of one variant.
func Pool(shares []float64, limit int) *fleet.Fleet {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{Name: "w"}},
		Apps: []serving.App{
			{
				Name: "a", SLO: serving.SLO{Latency: time.Second, Percentile: 99}, Weight: 1, QueueLimit: 1,
				Stages: []serving.StageID{0},
			},
		},
		Stages:   []serving.Stage{{Name: "s", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "v", Accuracy: 0.9, MaxBatch: limit}},
	}
	f := fleet.New(spec, profile.Constant{Base: time.Millisecond, PerItem: time.Millisecond})
	for k, w := range shares {
		i := f.Launch(fleet.Placement{
			Key: fleet.Key{Ordinal: int32(k)}, Terms: fleet.Terms{Slots: 1, Share: w},
			Variants: []fleet.Loaded{{Limit: limit, Wanted: true}},
		}, 0)
		f.Warm(i, 0)
	}
	return f
}

// Arrive lets n plain queries wait centrally.
func Arrive(f *fleet.Fleet, from, n int) {
	for k := range n {
		r := f.Add(&fleet.Work{
			Query: serving.QueryID(from + k), Items: 1, Pin: serving.None, Deadline: serving.Time(time.Second) +
				serving.Time(from+k),
		})
		f.Wait(r)
	}
}

// Ladder is a pool of workers with the same variants: accuracies 0.6, 0.7 and so on; a batch of n takes (4 + 3n) ms
// times 1, 2 and so on.
func Ladder(workers, variants, limit int, slo time.Duration, late serving.LatePolicy) *fleet.Fleet {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}},
		Apps: []serving.App{
			{
				Name: "a", SLO: serving.SLO{Latency: slo, Percentile: 99}, Late: late, Weight: 1, QueueLimit: 1000,
				Stages: []serving.StageID{0},
			},
		},
		Stages: []serving.Stage{{Name: "s"}},
	}
	var m serving.Measurements
	var loaded []fleet.Loaded
	for k := range variants {
		id := serving.VariantID(k)
		spec.Stages[0].Variants = append(spec.Stages[0].Variants, id)
		spec.Variants = append(spec.Variants, serving.Variant{
			Name: string(rune('a' + k)), Accuracy: 0.6 + 0.1*float64(k), MaxBatch: limit,
		})
		loaded = append(loaded, fleet.Loaded{Variant: id, Limit: limit, Wanted: true})
		for n := 1; n <= limit; n++ {
			x := time.Duration(k+1) * (4*time.Millisecond + time.Duration(n)*3*time.Millisecond)
			m.Latency = append(m.Latency, serving.LatencyPoint{
				Variant: id, Items: n, Concurrency: 1, Samples: 1, Mean: x, P50: x, P90: x, P95: x, P99: x,
			})
		}
	}
	for range workers {
		spec.Workers = append(spec.Workers, serving.Worker{Name: "w"})
	}
	table, err := profile.NewTable(spec, m, profile.P95)
	if err != nil {
		panic(err)
	}
	f := fleet.New(spec, table)
	for k := range workers {
		i := f.Launch(fleet.Placement{
			Key: fleet.Key{Worker: serving.WorkerID(k)}, Terms: fleet.Terms{Slots: 1}, Variants: loaded,
		}, 0)
		for v := range variants {
			f.Warm(i, serving.VariantID(v))
		}
	}
	return f
}

// AddWaiting lets a query of so many items wait centrally.
func AddWaiting(f *fleet.Fleet, id int, items int, deadline serving.Time) fleet.Ref {
	r := f.Add(&fleet.Work{Query: serving.QueryID(id), Items: int32(items), Pin: serving.None, Deadline: deadline})
	f.Wait(r)
	return r
}
