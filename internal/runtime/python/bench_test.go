package python

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// timed answers with how long a plain call of its function takes, in microseconds: what is left of a run is overhead.
const timed = `
import time
import numpy as np
class Model:
    inputs = {"x": "UINT8[-1,-1]"}
    outputs = {"us": "FP64[-1]"}
    def work(self, x):
        return x[0, 0] + x[0, -1]
    def infer(self, inputs):
        begun = time.perf_counter()
        self.work(inputs["x"])
        return {"us": np.full(len(inputs["x"]), (time.perf_counter() - begun) * 1e6)}
`

// BenchmarkOverhead measures what a batch of one query costs beside the call of the model's function. copy-µs is what
// one copy of the input takes on this machine: the overhead holds one of them.
func BenchmarkOverhead(b *testing.B) {
	for _, size := range []int{1 << 10, 10 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			back, l := backendOf(b, timed, nil)
			r, err := back.Launch(context.Background(), dataplane.InstanceSpec{
				ID: 1, Variants: []serving.VariantID{0}, BatchLimit: 1, Slots: 1, Cores: 1,
			})
			if err != nil {
				b.Fatal(err, l.text())
			}
			defer r.Close()
			data := bytes.Repeat([]byte{1}, size)
			batch := &dataplane.Batch{Items: 1, Portions: []dataplane.Portion{{Items: 1, Inputs: []tensor.Tensor{
				{Name: "x", DType: tensor.Uint8, Shape: []int64{1, int64(size)}, Data: data},
			}}}}
			inside := 0.0
			for b.Loop() {
				if err := r.Run(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
				inside += math.Float64frombits(binary.LittleEndian.Uint64(batch.Portions[0].Outputs[0].Data))
			}
			overhead := float64(b.Elapsed())/1e3 - inside
			into, begun, copies := make([]byte, size), time.Now(), 0
			for ; time.Since(begun) < 100*time.Millisecond; copies++ {
				copy(into, data)
			}
			b.ReportMetric(overhead/float64(b.N), "overhead-µs/op")
			b.ReportMetric(float64(time.Since(begun))/1e3/float64(copies), "copy-µs/op")
			b.ReportMetric(inside/float64(b.N), "call-µs/op")
		})
	}
}

// BenchmarkStart measures the start of a process until its model is warm.
func BenchmarkStart(b *testing.B) {
	back, _ := backendOf(b, scale, nil)
	for b.Loop() {
		r, err := back.Launch(b.Context(), dataplane.InstanceSpec{
			ID: 1, Variants: []serving.VariantID{0}, BatchLimit: 1, Slots: 1, Cores: 1,
		})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		_ = r.Close()
		b.StartTimer()
	}
}

// torched is a model of PyTorch, whose import takes longer than all else of its start.
const torched = `
import numpy as np
import torch
class Model:
    inputs = {"x": "FP32[-1,4]"}
    outputs = {"y": "FP32[-1,2]"}
    def load(self, config):
        self.net = torch.nn.Linear(4, 2)
    def infer(self, inputs):
        with torch.no_grad():
            return {"y": self.net(torch.from_numpy(inputs["x"].copy()))}
`

// BenchmarkStartTorch measures the start of a process with a model of PyTorch until it is warm: by itself, and with a
// spare process that waits. spare-MiB is what that takes.
func BenchmarkStartTorch(b *testing.B) {
	for name, n := range map[string]int{"cold": 0, "warm": 1} {
		b.Run(name, func(b *testing.B) {
			back, l := backendOf(b, torched, func(c *Config) { c.Spares = n })
			defer back.Close()
			start := func() {
				r, err := back.Launch(b.Context(), dataplane.InstanceSpec{
					ID: 1, Variants: []serving.VariantID{0}, BatchLimit: 1, Slots: 1, Cores: 1,
				})
				if err != nil {
					b.Skip(err, l.text())
				}
				b.StopTimer()
				_ = r.Close()
				if err := back.Settle(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(back.SpareMemory())/(1<<20), "spare-MiB")
				b.StartTimer()
			}
			start() // the first one is always cold
			for b.Loop() {
				start()
			}
		})
	}
}
