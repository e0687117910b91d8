// Package proteus runs the experiments of Proteus (ASPLOS 2024, §6) with the engine, planner and simulator of this
// project. Profiles, traces and objectives are those that the authors published.
package proteus

import (
	_ "embed" // the published numbers
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

//go:embed data/profile.csv
var profileCSV []byte

//go:embed data/arrivals.csv
var arrivalsCSV []byte

//go:embed data/slo.csv
var sloCSV []byte

// devices are the types and numbers of workers of the paper's cluster (§6.1.5), named as in data/profile.csv.
var devices = []struct {
	name  string
	count int
}{{"cpu", 20}, {"gpu_pascal", 10}, {"gpu_ampere", 10}}

// readProfile reads the published profile: a spec with scale times the paper's workers, one app for each family, and
// the measured latencies. Accuracies are relative to the best of the family, as in the paper.
func readProfile(scale int) (*serving.Spec, serving.Measurements, error) {
	var m serving.Measurements
	spec := &serving.Spec{}
	for d, x := range devices {
		spec.DeviceTypes = append(spec.DeviceTypes, serving.DeviceType{Name: x.name, Cores: 1})
		for k := range x.count * scale {
			spec.Workers = append(spec.Workers, serving.Worker{
				Name: fmt.Sprintf("%s-%d", x.name, k), DeviceType: serving.DeviceTypeID(d),
			})
		}
	}
	rows, err := reproduce.Records("data/profile.csv", profileCSV, "family", "variant", "accuracy_pct", "device",
		"batch", "p50_ms")
	if err != nil {
		return nil, m, err
	}
	for n, r := range rows {
		a := slices.IndexFunc(spec.Apps, func(a serving.App) bool { return a.Name == r[0] })
		if a < 0 {
			a = len(spec.Apps)
			spec.Apps = append(spec.Apps, serving.App{
				Name: r[0], SLO: serving.SLO{Latency: defaultObjective, Percentile: 99}, Weight: 1, QueueLimit: 100_000,
				Stages: []serving.StageID{serving.StageID(a)},
			})
			spec.Stages = append(spec.Stages, serving.Stage{Name: r[0], App: serving.AppID(a)})
		}
		v := slices.IndexFunc(spec.Variants, func(v serving.Variant) bool { return v.Name == r[1] })
		accuracy, err1 := strconv.ParseFloat(r[2], 64)
		batch, err2 := strconv.Atoi(r[4])
		p50, err3 := strconv.ParseFloat(r[5], 64)
		d := slices.IndexFunc(spec.DeviceTypes, func(d serving.DeviceType) bool { return d.Name == r[3] })
		if err1 != nil || err2 != nil || err3 != nil || d < 0 {
			return nil, m, fmt.Errorf("data/profile.csv: line %d is malformed", n+2)
		}
		if v < 0 {
			v = len(spec.Variants)
			spec.Variants = append(spec.Variants, serving.Variant{
				Name: r[1], Stage: serving.StageID(a), Accuracy: accuracy / 100, MaxBatch: batches[len(batches)-1],
			})
			spec.Stages[a].Variants = append(spec.Stages[a].Variants, serving.VariantID(v))
		}
		took := time.Duration(p50 * float64(time.Millisecond))
		m.Latency = append(m.Latency, serving.LatencyPoint{
			Variant: serving.VariantID(v), DeviceType: serving.DeviceTypeID(d), Items: batch, Concurrency: 1,
			Mean: took, P50: took, P90: took, P95: took, P99: took,
		})
	}
	return spec, m, spec.Validate()
}

// defaultObjective is the objective of every family in the authors' main runs.
const defaultObjective = 300 * time.Millisecond

// batches are the batch sizes that were measured and may be planned.
var batches = []int{1, 2, 4, 8}

// readObjectives reads the objectives of §6.6. names are the multiples of the fastest CPU variant's latency, in the
// order of the file. by has the objectives for each multiple, by AppID.
func readObjectives(spec *serving.Spec) (names []string, by map[string][]time.Duration, err error) {
	rows, err := reproduce.Records("data/slo.csv", sloCSV, "multiple", "family", "slo_ms")
	if err != nil {
		return nil, nil, err
	}
	by = make(map[string][]time.Duration)
	for n, r := range rows {
		a := slices.IndexFunc(spec.Apps, func(a serving.App) bool { return a.Name == r[1] })
		ms, err := strconv.ParseFloat(r[2], 64)
		if err != nil || a < 0 {
			return nil, nil, fmt.Errorf("data/slo.csv: line %d is malformed", n+2)
		}
		if by[r[0]] == nil {
			names = append(names, r[0])
			by[r[0]] = make([]time.Duration, len(spec.Apps))
		}
		by[r[0]][a] = time.Duration(ms * float64(time.Millisecond))
	}
	return names, by, nil
}
