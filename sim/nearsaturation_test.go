package sim

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// chain adds an app of stages that follow each other, each with a fast and an accurate variant on every machine: 0.775
// and 0.95 accurate, the latter x.slower times as slow. first is by stage what a batch of one takes on the fast one,
// each what every further item does.
func (x *saturated) chain(objective time.Duration, rate float64, most int, first, each []time.Duration) {
	app := serving.AppID(len(x.spec.Apps))
	a := serving.App{Name: "chain", Weight: 1, QueueLimit: 1 << 20,
		SLO: serving.SLO{Latency: objective, Percentile: 99}}
	for s := range first {
		id := serving.StageID(len(x.spec.Stages))
		a.Stages = append(a.Stages, id)
		stage := serving.Stage{Name: "s", App: app}
		if s > 0 {
			before := &x.spec.Stages[id-1]
			before.Next, stage.Joins = []serving.Edge{{To: id, FanOut: max(x.fan, 1)}}, 1
		}
		for _, v := range []struct{ accuracy, factor float64 }{{0.775, 1}, {0.95, max(x.slower, 1.7)}} {
			variant := serving.VariantID(len(x.spec.Variants))
			stage.Variants = append(stage.Variants, variant)
			x.spec.Variants = append(x.spec.Variants, serving.Variant{
				Name: "v", Stage: id, Accuracy: v.accuracy, MaxBatch: most, MemoryBytes: 1,
			})
			for b := 1; b <= most; b *= 2 {
				mean := time.Duration(v.factor * float64(first[s]+time.Duration(b-1)*each[s]))
				x.measured.Latency = append(x.measured.Latency, serving.LatencyPoint{
					Variant: variant, Items: b, Concurrency: 1, Mean: mean, P95: mean, StdDev: mean / 50,
				})
			}
		}
		x.spec.Stages = append(x.spec.Stages, stage)
	}
	x.spec.Apps = append(x.spec.Apps, a)
	x.rates = append(x.rates, rate)
}

type saturated struct {
	spec     *serving.Spec
	measured serving.Measurements
	rates    []float64
	fan      float64 // items of each following stage, for each item; 0 means 1
	slower   float64 // by what factor accurate variants are slower; 0 means 1.7
}

// run serves for some time with everything loaded everywhere, and returns the share of each app's queries in time.
func (x *saturated) run(t *testing.T, machines int, span time.Duration) (inTime []float64) {
	t.Helper()
	x.spec.DeviceTypes = []serving.DeviceType{{Name: "d", Cores: 1, MemoryBytes: 1 << 30}}
	var placed []static.Instance
	for w := range machines {
		x.spec.Workers = append(x.spec.Workers, serving.Worker{Name: "w"})
		for s := range x.spec.Stages {
			placed = append(placed, static.Instance{
				Stage: serving.StageID(s), Worker: serving.WorkerID(w), Variants: x.spec.Stages[s].Variants,
			})
		}
	}
	believed, err := profile.NewTable(x.spec, x.measured, profile.P95)
	if err != nil {
		t.Fatal(err)
	}
	e, p := fixed(t, "sluice", x.spec, believed, placed)
	tr, err := truth.NewTable(x.spec, x.measured, truth.Lognormal, workload.Rand(1, "service"))
	if err != nil {
		t.Fatal(err)
	}
	var all []workload.Source
	var infos []report.AppInfo
	for a, rate := range x.rates {
		constant, err := workload.Constant(rate)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &workload.App{
			Times: workload.NewProcess(constant, workload.Poisson{},
				workload.Rand(uint64(a), "arrivals")),
			Sizes: workload.ConstantSize(1), SizeRand: workload.Rand(1, "items"),
			Template: workload.Arrival{App: serving.AppID(a), Variant: serving.None, Sample: -1},
		})
		infos = append(infos, report.AppInfo{
			Name: x.spec.Apps[a].Name, BestAccuracy: x.spec.BestAccuracy(serving.AppID(a)), SLO: x.spec.Apps[a].SLO,
		})
	}
	r := report.NewRecorder(infos, report.Options{})
	_, err = Run(Config{
		Spec: x.spec, Engine: e, Truth: tr, Initial: p, Warm: true, Recorder: r,
		Source: workload.Limit(workload.Merge(all...), serving.Time(span), math.MaxInt),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Report(report.Meta{Duration: span}).Apps {
		inTime = append(inTime, float64(a.InTime)/float64(a.Offered))
	}
	return inTime
}

const ms = float64(time.Millisecond)

func millis(list ...float64) (out []time.Duration) {
	for _, x := range list {
		out = append(out, time.Duration(x*ms))
	}
	return out
}

// Machines carry a graph's queries on fast variants, just so. No stage works for queries that a later one has to give
// up.
func TestGraphNearSaturation(t *testing.T) {
	x := &saturated{spec: &serving.Spec{}}
	x.chain(450*time.Millisecond, 5300, 16, millis(2, 2, 2), millis(1.4, 1.4, 1.7))
	got := x.run(t, 28, 10*time.Second)
	t.Logf("%.2f %% in time", 100*got[0])
	if got[0] < 0.96 {
		t.Errorf("%.1f %% of what the machines carry are in time", 100*got[0])
	}
}

// Nine items of a query reach the last of three stages, three of them the second, and another app's long batches keep
// most machines busy. No stage takes so much of the objective that the query is in time only if all of its items have
// machines of their own at once.
func TestSiblingsShareMachines(t *testing.T) {
	x := &saturated{spec: &serving.Spec{}, fan: 3, slower: 3}
	x.chain(72*time.Millisecond, 90, 8, millis(8, 8, 4), millis(1.5, 3, 1))
	x.fan = 1
	x.chain(440*time.Millisecond, 60, 4, millis(40), millis(15))
	got := x.run(t, 12, 20*time.Second)
	t.Logf("%.2f and %.2f %% in time", 100*got[0], 100*got[1])
	if got[0] < 0.85 || got[1] < 0.95 {
		t.Errorf("%.1f and %.1f %% are in time", 100*got[0], 100*got[1])
	}
}

// Fast variants carry both apps. Accurate answers of the one are worth more than those of the other, whose queries take
// long, and do not displace them.
func TestServingComesBeforeAccuracy(t *testing.T) {
	x := &saturated{spec: &serving.Spec{}}
	x.chain(1380*time.Millisecond, 83, 2, millis(20), millis(2))
	x.chain(450*time.Millisecond, 1000, 2, millis(2, 2, 2), millis(1.5, 1.5, 1.7))
	got := x.run(t, 8, 30*time.Second)
	t.Logf("%.2f and %.2f %% in time", 100*got[0], 100*got[1])
	if got[0] < 0.95 || got[1] < 0.95 {
		t.Errorf("%.1f and %.1f %% are in time", 100*got[0], 100*got[1])
	}
}
