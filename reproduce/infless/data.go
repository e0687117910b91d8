// Package infless runs the experiments of INFless (ASPLOS 2022, §5) from the latencies its authors published, on this
// project's planner, engine and simulator.
package infless

import (
	"embed"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

//go:embed data/*.csv
var files embed.FS

var data = reproduce.Data{Files: files}

const ms = time.Millisecond

// instanceSize of a machine.
type instanceSize struct{ threads, percent int }

// latencyTable is a function's latency by part and batch; batches that do not run are left out.
type latencyTable map[instanceSize]map[int]time.Duration

// readLatencies reads what was published of all functions.
func readLatencies() (map[string]latencyTable, error) {
	rows, err := data.Records("latency.csv", "function", "threads", "percent", "batch", "ms")
	if err != nil {
		return nil, err
	}
	out := make(map[string]latencyTable)
	for n, r := range rows {
		v, err := reproduce.Numbers("latency.csv", n, r[1:])
		if err != nil {
			return nil, err
		}
		if out[r[0]] == nil {
			out[r[0]] = make(latencyTable)
		}
		at := instanceSize{int(v[0]), int(v[1])}
		if out[r[0]][at] == nil {
			out[r[0]][at] = make(map[int]time.Duration)
		}
		if v[3] > 0 {
			out[r[0]][at][int(v[2])] = time.Duration(v[3] * float64(ms))
		}
	}
	return out, nil
}

// instanceSizes lists all parts that any function was measured on.
func instanceSizes(all map[string]latencyTable) (out []instanceSize) {
	for _, m := range all {
		for p := range m {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b instanceSize) int {
		if a.threads != b.threads {
			return a.threads - b.threads
		}
		return a.percent - b.percent
	})
	return out
}

// maxBatch batch (§5.1), and the time that stands for batches that do not run: longer than any objective.
const (
	maxBatch = 32
	tooLong  = 10 * time.Second
)

// points are what was measured of a function as measurements of a variant. Beyond the largest batch that runs on a part
// nothing may be planned, so there stands what no objective allows.
func (m latencyTable) points(v serving.VariantID, device func(instanceSize) serving.DeviceTypeID) (out []serving.LatencyPoint) {
	for p, batches := range m {
		top := 0
		add := func(b int, t time.Duration) {
			out = append(out, serving.LatencyPoint{
				Variant: v, DeviceType: device(p), Items: b, Concurrency: 1, Samples: 1, Mean: t, P50: t, P90: t,
				P95: t, P99: t,
			})
		}
		for b, t := range batches {
			add(b, t)
			top = max(top, b)
		}
		if top > 0 && top < maxBatch {
			add(top+1, tooLong)
		}
	}
	slices.SortFunc(out, func(a, b serving.LatencyPoint) int {
		if a.DeviceType != b.DeviceType {
			return int(a.DeviceType - b.DeviceType)
		}
		return a.Items - b.Items
	})
	return out
}
