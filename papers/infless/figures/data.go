// Package infless runs the experiments of INFless (ASPLOS 2022, §5) with the planner, engine and simulator of this
// project. Latencies are those that the authors published.
package infless

import (
	"cmp"
	"embed"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

//go:embed data/*.csv
var files embed.FS

var data = reproduce.Data{Files: files}

const ms = time.Millisecond

// instanceSize is the share of a machine that an instance has: CPU threads and per cent of an accelerator.
type instanceSize struct{ threads, percent int }

// latencyTable is the latency of a function by instance size and batch size. Batches that do not run are missing.
type latencyTable map[instanceSize]map[int]time.Duration

// readLatencies reads the published latencies of all functions.
func readLatencies() (map[string]latencyTable, error) {
	out := make(map[string]latencyTable)
	return out, data.Read("latency.csv", "function,threads,percent,batch,ms", 1, func(key []string, v []float64) error {
		if out[key[0]] == nil {
			out[key[0]] = make(latencyTable)
		}
		of, at := out[key[0]], instanceSize{int(v[0]), int(v[1])}
		if of[at] == nil {
			of[at] = make(map[int]time.Duration)
		}
		if v[3] > 0 {
			of[at][int(v[2])] = time.Duration(v[3] * float64(ms))
		}
		return nil
	})
}

// instanceSizes returns the sizes at which any function was measured, by rising threads and per cent.
func instanceSizes(all map[string]latencyTable) (out []instanceSize) {
	for _, m := range all {
		for p := range m {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b instanceSize) int {
		return cmp.Or(a.threads-b.threads, a.percent-b.percent)
	})
	return out
}

// maxBatch is the largest batch (§5.1). tooLong is longer than any objective; it is the latency of batches that do not
// run.
const (
	maxBatch = 32
	tooLong  = 10 * time.Second
)

// points returns the latencies as measurements of variant v. A batch just above the largest that runs on a size gets a
// latency that no objective allows, so that it is never planned.
func (m latencyTable) points(v serving.VariantID,
	device func(instanceSize) serving.DeviceTypeID) (out []serving.LatencyPoint) {
	for p, batches := range m {
		top := 0
		add := func(b int, t time.Duration) {
			out = append(out, reproduce.Always(serving.LatencyPoint{
				Variant: v, DeviceType: device(p), Items: b, Concurrency: 1, Samples: 1,
			}, t))
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
		return cmp.Or(int(a.DeviceType-b.DeviceType), a.Items-b.Items)
	})
	return out
}
