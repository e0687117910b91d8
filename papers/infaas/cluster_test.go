package infaas

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// cluster is apps of one stage. Each has the (accuracy, latency of one item in ms by device type) of its variants;
// workers have device types. Batches are of one item, so that a variant carries 1000 / latency items/s; a latency of 0
// was never measured. The objective is two seconds, so that everything up to a second is in time.
type cluster struct {
	workers []int
	apps    [][]offer
	weights []float64
}

type offer struct {
	accuracy float64
	ms       []float64
}

func (w cluster) build() (*serving.Spec, *profile.Table) {
	spec := &serving.Spec{}
	var m serving.Measurements
	devices := len(w.apps[0][0].ms)
	for d := range devices {
		spec.DeviceTypes = append(spec.DeviceTypes, serving.DeviceType{
			Name: fmt.Sprintf("d%d", d), PricePerHour: 1, Cores: 1,
		})
	}
	for n, d := range w.workers {
		spec.Workers = append(spec.Workers, serving.Worker{
			Name: fmt.Sprintf("w%d", n), DeviceType: serving.DeviceTypeID(d),
		})
	}
	for a, offers := range w.apps {
		weight := 1.0
		if w.weights != nil {
			weight = w.weights[a]
		}
		s := serving.StageID(a)
		spec.Apps = append(spec.Apps, serving.App{Name: fmt.Sprintf("a%d", a), Weight: weight, QueueLimit: 100,
			SLO: serving.SLO{Latency: 2001 * time.Millisecond, Percentile: 99}, Stages: []serving.StageID{s}})
		st := serving.Stage{Name: fmt.Sprintf("a%d", a), App: serving.AppID(a)}
		for _, o := range offers {
			v := serving.VariantID(len(spec.Variants))
			st.Variants = append(st.Variants, v)
			spec.Variants = append(spec.Variants, serving.Variant{
				Name: fmt.Sprintf("v%d", v), Stage: s, Accuracy: o.accuracy, MaxBatch: 1,
			})
			for d, ms := range o.ms {
				if ms > 0 {
					l := time.Duration(ms * 1e6)
					m.Latency = append(m.Latency, serving.LatencyPoint{
						Variant: v, DeviceType: serving.DeviceTypeID(d), Items: 1, Concurrency: 1, Mean: l, P50: l,
						P90: l, P95: l, P99: l,
					})
				}
			}
		}
		spec.Stages = append(spec.Stages, st)
	}
	t, err := profile.NewTable(spec, m, profile.P50)
	if err != nil {
		panic(err)
	}
	return spec, t
}

// random returns a small cluster. More accurate variants are slower, but not on every device type by the same factor,
// and some were not measured everywhere.
func random(rng *rand.Rand, apps, workers int) cluster {
	devices := 1 + rng.IntN(3)
	w := cluster{}
	for range workers {
		w.workers = append(w.workers, rng.IntN(devices))
	}
	for range apps {
		var offers []offer
		accuracy, ms := 0.5+0.2*rng.Float64(), 5+40*rng.Float64()
		for range 1 + rng.IntN(3) {
			o := offer{accuracy: accuracy, ms: make([]float64, devices)}
			for d := range o.ms {
				if d == 0 || rng.IntN(5) > 0 {
					o.ms[d] = ms * (0.3 + rng.Float64())
				}
			}
			offers = append(offers, o)
			accuracy += 0.1 * rng.Float64()
			ms *= 1 + 2*rng.Float64()
		}
		w.apps = append(w.apps, offers)
	}
	return w
}

// running is a snapshot in which the plan is in force.
func running(p *plan.Plan, at serving.Time) *fleet.Snapshot {
	out := &fleet.Snapshot{Seq: p.Snapshot + 1, At: at}
	for n, i := range p.Instances {
		out.Instances = append(out.Instances, fleet.InstanceSnapshot{ID: serving.InstanceID(n + 1),
			Key:   fleet.Key{Worker: i.Worker, Ordinal: i.Place},
			Stage: i.Stage, State: fleet.Ready, Slots: 1, Share: i.Share, Variants: []fleet.Loaded{
				{Variant: i.Variants[0].Variant, Limit: i.Variants[0].Limit, Warm: true, Wanted: true},
			}})
	}
	return out
}

// hosting returns a snapshot in which workers host variants, -1 for none.
func hosting(spec *serving.Spec, variants ...int) *fleet.Snapshot {
	out := &fleet.Snapshot{Seq: 1}
	for w, v := range variants {
		if v >= 0 {
			out.Instances = append(out.Instances, fleet.InstanceSnapshot{ID: serving.InstanceID(w + 1),
				Key:   fleet.Key{Worker: serving.WorkerID(w), Ordinal: 1},
				Stage: spec.Variants[v].Stage, State: fleet.Ready, Slots: 1, Variants: []fleet.Loaded{
					{Variant: serving.VariantID(v), Limit: 1, Warm: true, Wanted: true},
				}})
		}
	}
	return out
}

// hosts is what a plan has the workers host, -1 for nothing.
func hosts(spec *serving.Spec, p *plan.Plan) []int {
	out := make([]int, len(spec.Workers))
	for w := range out {
		out[w] = -1
	}
	for _, i := range p.Instances {
		out[i.Worker] = int(i.Variants[0].Variant)
	}
	return out
}

func must(t *testing.T, p *Planner, r plan.Request) *plan.Plan {
	t.Helper()
	out, err := p.Plan(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Validate(r.Spec); err != nil {
		t.Fatal(err)
	}
	return out
}

// carried returns the items/s that a worker carries of a variant; 0 when it cannot be planned.
func carried(spec *serving.Spec, believed profile.Profile, batches []int, v serving.VariantID,
	w serving.WorkerID) float64 {
	within := capacity.StageDemands(spec, nil)[spec.Variants[v].Stage].Budget
	_, rate := capacity.BatchRule{Batches: batches}.Capacity(believed, spec, v, spec.Workers[w].DeviceType, within)
	return rate
}
