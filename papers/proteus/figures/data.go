// Package proteus runs the experiments of Proteus (ASPLOS 2024, §6) with the engine, planner and simulator of this
// project. Profiles, traces and objectives are those that the authors published.
package proteus

import (
	"embed"
	"fmt"
	"strconv"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

//go:embed data/*.csv
var files embed.FS

var data = reproduce.Data{Files: files}

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
	err := data.Read("profile.csv", "family,variant,accuracy_pct,device,batch,p50_ms", 4, func(key []string,
		n []float64) error {
		a := indexOf(spec.Apps, func(a *serving.App) bool { return a.Name == key[0] })
		if a < 0 {
			a = len(spec.Apps)
			spec.Apps = append(spec.Apps, serving.App{
				Name: key[0], SLO: serving.SLO{Latency: defaultObjective, Percentile: 99}, Weight: 1,
				QueueLimit: 100_000, Stages: []serving.StageID{serving.StageID(a)},
			})
			spec.Stages = append(spec.Stages, serving.Stage{Name: key[0], App: serving.AppID(a)})
		}
		accuracy, err := strconv.ParseFloat(key[2], 64)
		d := indexOf(spec.DeviceTypes, func(d *serving.DeviceType) bool { return d.Name == key[3] })
		if err != nil || d < 0 {
			return fmt.Errorf("accuracy %q or device %q is none", key[2], key[3])
		}
		v := indexOf(spec.Variants, func(v *serving.Variant) bool { return v.Name == key[1] })
		if v < 0 {
			v = len(spec.Variants)
			spec.Variants = append(spec.Variants, serving.Variant{
				Name: key[1], Stage: serving.StageID(a), Accuracy: accuracy / 100, MaxBatch: batches[len(batches)-1],
			})
			spec.Stages[a].Variants = append(spec.Stages[a].Variants, serving.VariantID(v))
		}
		m.Latency = append(m.Latency, reproduce.Always(serving.LatencyPoint{
			Variant: serving.VariantID(v), DeviceType: serving.DeviceTypeID(d), Items: int(n[0]), Concurrency: 1,
		}, time.Duration(n[1]*float64(time.Millisecond))))
		return nil
	})
	if err != nil {
		return nil, m, err
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
	by = make(map[string][]time.Duration)
	err = data.Read("slo.csv", "multiple,family,slo_ms", 2, func(key []string, n []float64) error {
		a := indexOf(spec.Apps, func(a *serving.App) bool { return a.Name == key[1] })
		if a < 0 {
			return fmt.Errorf("family %q is not in the profile", key[1])
		}
		if by[key[0]] == nil {
			names = append(names, key[0])
			by[key[0]] = make([]time.Duration, len(spec.Apps))
		}
		by[key[0]][a] = time.Duration(n[0] * float64(time.Millisecond))
		return nil
	})
	return names, by, err
}
