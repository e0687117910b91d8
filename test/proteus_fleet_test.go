package test

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// measured is the fleet of Proteus (§6.1.5) and what its authors measured: 46 variants of 9 families on 20 CPUs and 10
// of each of two kinds of GPU, each scaled times.
func measured(t testing.TB, scale int) (*serving.Spec, serving.Measurements) {
	t.Helper()
	f, err := os.Open("../papers/proteus/figures/data/profile.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	spec, m := &serving.Spec{}, serving.Measurements{}
	names := []string{"cpu", "gpu_pascal", "gpu_ampere"}
	for d, n := range []int{20, 10, 10} {
		spec.DeviceTypes = append(spec.DeviceTypes, serving.DeviceType{Name: names[d], Cores: 1})
		for range n * scale {
			spec.Workers = append(spec.Workers, serving.Worker{
				Name: fmt.Sprintf("w%d", len(spec.Workers)), DeviceType: serving.DeviceTypeID(d),
			})
		}
	}
	for _, r := range rows[1:] {
		a := slices.IndexFunc(spec.Apps, func(a serving.App) bool { return a.Name == r[0] })
		if a < 0 {
			a = addApp(spec, r[0], 300*time.Millisecond)
		}
		accuracy, err1 := strconv.ParseFloat(r[2], 64)
		items, err2 := strconv.Atoi(r[4])
		ms, err3 := strconv.ParseFloat(r[5], 64)
		d := slices.Index(names, r[3])
		if err1 != nil || err2 != nil || err3 != nil || d < 0 {
			t.Fatalf("profile.csv: %v", r)
		}
		v := slices.IndexFunc(spec.Variants, func(v serving.Variant) bool { return v.Name == r[1] })
		if v < 0 {
			v = int(addVariant(spec, a, r[1], accuracy/100, 8))
		}
		m.Latency = append(m.Latency, measurement(serving.VariantID(v), d, items, ms))
	}
	return spec, m
}

// multiplied makes more apps and variants of the measured ones: every app gets variants of several families, with
// accuracies and latencies moved by some hundredths. Objectives differ by app.
func multiplied(t testing.TB, rng *rand.Rand, workers, apps, variants int) (*serving.Spec, serving.Measurements) {
	t.Helper()
	from, took := measured(t, 1)
	spec, m := &serving.Spec{DeviceTypes: from.DeviceTypes}, serving.Measurements{}
	for n := range workers {
		spec.Workers = append(spec.Workers, serving.Worker{
			Name: fmt.Sprintf("w%d", n), DeviceType: []serving.DeviceTypeID{0, 1, 0, 2}[n%4],
		})
	}
	for a := range apps {
		addApp(spec, fmt.Sprintf("app%d", a), []time.Duration{200, 300, 400, 600}[rng.IntN(4)]*time.Millisecond)
	}
	for len(spec.Variants) < variants {
		a := len(spec.Variants) % apps
		like := rng.IntN(len(from.Variants))
		x := &from.Variants[like]
		v := addVariant(spec, a, fmt.Sprintf("v%d", len(spec.Variants)), min(1, x.Accuracy*(0.97+0.03*rng.Float64())),
			x.MaxBatch)
		slower := 0.8 + 0.4*rng.Float64()
		for _, p := range took.Latency {
			if int(p.Variant) == like {
				m.Latency = append(m.Latency, measurement(v, int(p.DeviceType), p.Items, slower*p.P50.Seconds()*1000))
			}
		}
	}
	return spec, m
}

func addApp(spec *serving.Spec, name string, objective time.Duration) int {
	a := len(spec.Apps)
	spec.Apps = append(spec.Apps, serving.App{
		Name: name, Weight: 1, QueueLimit: 1000, SLO: serving.SLO{Latency: objective, Percentile: 99},
		Stages: []serving.StageID{serving.StageID(len(spec.Stages))},
	})
	spec.Stages = append(spec.Stages, serving.Stage{Name: name, App: serving.AppID(a)})
	return a
}

// addVariant adds a variant to the first stage of an app.
func addVariant(spec *serving.Spec, a int, name string, accuracy float64, batch int) serving.VariantID {
	v, s := serving.VariantID(len(spec.Variants)), spec.Apps[a].Stages[0]
	spec.Variants = append(spec.Variants, serving.Variant{Name: name, Stage: s, Accuracy: accuracy, MaxBatch: batch})
	spec.Stages[s].Variants = append(spec.Stages[s].Variants, v)
	return v
}

func measurement(v serving.VariantID, d, items int, ms float64) serving.LatencyPoint {
	l := time.Duration(ms * float64(time.Millisecond))
	return serving.LatencyPoint{
		Variant: v, DeviceType: serving.DeviceTypeID(d), Items: items, Concurrency: 1, Mean: l, P50: l, P90: l, P95: l,
		P99: l,
	}
}

func believed(t testing.TB, spec *serving.Spec, m serving.Measurements) *profile.Table {
	t.Helper()
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	p, err := profile.NewTable(spec, m, profile.P50)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// running is the snapshot of a fleet that runs a plan.
func running(p *plan.Plan, spec *serving.Spec) *fleet.Snapshot {
	s := &fleet.Snapshot{Seq: p.Snapshot + 1}
	for n, i := range p.Instances {
		x := fleet.InstanceSnapshot{
			ID: serving.InstanceID(n), Key: fleet.Key{Worker: i.Worker, Ordinal: i.Place},
			DeviceType: spec.Workers[i.Worker].DeviceType,
			Stage:      i.Stage, State: fleet.Ready, Slots: i.Slots, Cores: i.Cores, Share: i.Share,
		}
		for _, v := range i.Variants {
			x.Variants = append(x.Variants, fleet.Loaded{Variant: v.Variant, Limit: v.Limit, Warm: true, Wanted: true})
		}
		s.Instances = append(s.Instances, x)
	}
	return s
}

// zipf is rates of so many apps that add up to 1: the apps in turn, from the n-th on, are half, a third, a fourth as
// popular.
func zipf(apps, n int) []float64 {
	out, sum := make([]float64, apps), 0.0
	for a := range out {
		out[a] = 1 / float64(1+(a+n)%apps)
		sum += out[a]
	}
	return scaled(out, 1/sum)
}

func scaled(rates []float64, by float64) []float64 {
	out := make([]float64, len(rates))
	for a := range rates {
		out[a] = by * rates[a]
	}
	return out
}
