// Package kairos runs the experiments of Kairos (HPDC 2023, §4 and §8) with the engine, planners and simulator of this
// project. Latencies are those that the authors published.
package kairos

import (
	"embed"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

//go:embed data/*.csv
var files embed.FS

var data = reproduce.Data{Files: files}

// machineTypes are the types of machines that are rented, the base type first (Table 4).
var machineTypes = []serving.DeviceType{
	{Name: "g4dn.xlarge", PricePerHour: 0.526},
	{Name: "c5n.2xlarge", PricePerHour: 0.432},
	{Name: "r5n.large", PricePerHour: 0.149},
	{Name: "t3.xlarge", PricePerHour: 0.1664},
}

// budget is the paper's budget in $/h (§7).
const budget = 2.5

// model is a model of Table 3.
type model struct {
	name string
	qos  time.Duration
}

var models = []model{{"ncf", 5 * ms}, {"rm2", 350 * ms}, {"wnd", 25 * ms}, {"mtwnd", 25 * ms}, {"dien", 35 * ms}}

const ms = time.Millisecond

// maxItems is the most items of a query. Latencies were measured at multiples of itemStep.
const maxItems, itemStep = 1000, 10

// readLatencies reads the measured latencies of a model. They are of variant 0.
func readLatencies(name string) (m serving.Measurements, err error) {
	err = data.Read("latency.csv", "model,type,items,mean_ns,stddev_ns", 2, func(key []string, v []float64) error {
		d := slices.IndexFunc(machineTypes, func(t serving.DeviceType) bool { return t.Name == key[1] })
		if d < 0 {
			return fmt.Errorf("there is no type %q", key[1])
		}
		if key[0] == name {
			m.Latency = append(m.Latency, serving.LatencyPoint{
				DeviceType: serving.DeviceTypeID(d), Items: int(v[0]), Concurrency: 1, Mean: time.Duration(v[1]),
				StdDev: time.Duration(v[2]),
			})
		}
		return nil
	})
	if err != nil {
		return m, err
	}
	if want := len(machineTypes) * maxItems / itemStep; len(m.Latency) != want {
		return m, fmt.Errorf("data/latency.csv: %d points of %s, want %d", len(m.Latency), name, want)
	}
	return m, nil
}
