//go:build cgo

package onnx

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// mlp is a small classifier: width inputs, one hidden layer, ten outputs.
func mlp(width, hidden int64) *onnxmodel.Graph {
	return onnxmodel.NewGraph("mlp").Input("x", onnxmodel.Float32, -1, width).
		Initializer("w1", make([]float32, width*hidden), width, hidden).Initializer("w2", make([]float32, hidden*10),
		hidden, 10).
		Node("MatMul", []string{"x", "w1"}, []string{"h"}).Node("Relu", []string{"h"}, []string{"a"}).
		Node("MatMul", []string{"a", "w2"}, []string{"y"}).Output("y", onnxmodel.Float32, -1, 10)
}

// BenchmarkONNXRun compares a run through this package with the bare binding on tensors made beforehand: the difference
// is what the package costs. parts=8 joins eight queries of one item. bound is the bare binding with tensors that are
// bound once and for all (IO binding), which no server's queries are: it is the most that binding could save.
func BenchmarkONNXRun(b *testing.B) {
	needRuntime(b)
	const width = 64
	path := write(b, mlp(width, 16))
	in := launch(b, 8, 1, Model{Path: path})
	part := func() tensor.Tensor { return floats("x", []int64{1, width}, make([]float32, width)...) }
	for _, parts := range []int{1, 8} {
		b.Run(fmt.Sprintf("bare/items=%d", parts), func(b *testing.B) {
			s := in.loaded[0].sessions[0].s
			x, y := emptyFloats(b, parts, width), emptyFloats(b, parts, 10)
			ins, outs := []ort.Value{x}, []ort.Value{y}
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Run(ins, outs); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("bound/items=%d", parts), func(b *testing.B) {
			s := in.loaded[0].sessions[0].s
			x, y := emptyFloats(b, parts, width), emptyFloats(b, parts, 10)
			bound, err := s.CreateIoBinding()
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = bound.Destroy() }()
			if err := errors.Join(bound.BindInput("x", x), bound.BindOutput("y", y)); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := s.RunWithBinding(bound); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, cancellable := range []bool{false, true} {
			b.Run(fmt.Sprintf("sluice/parts=%d/cancellable=%t", parts, cancellable), func(b *testing.B) {
				ctx := context.Background()
				if cancellable {
					ctx = b.Context()
				}
				var inputs []tensor.Tensor
				for range parts {
					inputs = append(inputs, part())
				}
				batch := one(0, inputs...)
				b.ReportAllocs()
				for b.Loop() {
					if err := in.Run(ctx, batch); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkLengths runs the same batches of queries, whose lengths are log-normal, group by group and joined, in turns.
// apart/joined is how much longer the groups take, the median over batches.
func BenchmarkLengths(b *testing.B) {
	for _, width := range []int64{32, 128, 256} {
		for _, middle := range []float64{8, 32, 128} {
			b.Run(fmt.Sprintf("width=%d/length=%.0f", width, middle), func(b *testing.B) {
				r := rand.New(rand.NewPCG(38, 38))
				path := writeNamed(b, encoder(r, onnxmodel.Int64, width, 2), encoderNames)
				benchLengths(b, launch(b, 64, 1, Model{Path: path}), r, middle)
			})
		}
	}
}

func benchLengths(b *testing.B, in *instance, r *rand.Rand, middle float64) {
	var batches []*dataplane.Batch
	for range 32 {
		made := texts(r, tensor.Int64, 16, middle, 0.6)
		for i := range made.Portions {
			made.Portions[i].Wanted = []string{"pooled"}
		}
		batches = append(batches, made)
	}
	padding := in.loaded[0].m.padding
	var ratios []float64
	groups := [2]int{}
	for round := 0; b.Loop(); round++ {
		batch := batches[round%len(batches)]
		var took [2]time.Duration // apart, joined
		for _, joined := range []int{round % 2, 1 - round%2} {
			padding.refused.Store(joined == 0)
			start := time.Now()
			if err := in.Run(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			took[joined] = time.Since(start)
			groups[joined] += len(in.loaded[0].m.groups(batch.Portions))
		}
		ratios = append(ratios, took[0].Seconds()/took[1].Seconds())
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "apart/joined")
	b.ReportMetric(float64(groups[0])/float64(b.N), "lengths/op")
	b.ReportMetric(float64(groups[1])/float64(b.N), "runs/op")
}

// BenchmarkSlots compares two ways of running two batches at once: a session for each slot, and one session that both
// share, for a model of few large operators and for one of many small ones. One session keeps one copy of the weights;
// with sessions of their own the runs share neither threads nor an allocator.
func BenchmarkSlots(b *testing.B) {
	needRuntime(b)
	chain := onnxmodel.NewGraph("chain").Input("x", onnxmodel.Float32, -1, 784)
	from := "x"
	for i := range 200 {
		to := fmt.Sprintf("h%d", i)
		chain.Node([]string{"Sin", "Cos"}[i%2], []string{from}, []string{to})
		from = to
	}
	chain.Node("Neg", []string{from}, []string{"y"}).Output("y", onnxmodel.Float32, -1, 784)
	in := launch(b, 8, 2, Model{Path: write(b, mlp(784, 1024))}, Model{Path: write(b, chain)})
	for v, model := range []string{"large", "small"} {
		for _, shared := range []bool{false, true} {
			b.Run(fmt.Sprintf("operators=%s/shared=%t", model, shared), func(b *testing.B) {
				benchSlots(b, in.loaded[serving.VariantID(v)].sessions, shared)
			})
		}
	}
}

func benchSlots(b *testing.B, sessions []*session, shared bool) {
	x := floats("x", []int64{8, 784}, make([]float32, 8*784)...)
	var next atomic.Int32
	b.RunParallel(func(pb *testing.PB) {
		s := sessions[int(next.Add(1))%len(sessions)]
		if shared {
			// Each goroutine brings buffers of its own to the first session.
			own := *sessions[0]
			own.join, own.ins, own.outs, own.data = make([][]byte, 1), make([]ort.Value, 1), make([]ort.Value, 1),
				make([][]byte, 1)
			own.temp, own.pins = nil, runtime.Pinner{}
			all := *own.all
			all.outs, own.all = make([]ort.Value, 1), &all
			s = &own
		}
		parts := []dataplane.Portion{{Query: 1, Items: 8, Inputs: []tensor.Tensor{x}}}
		for pb.Next() {
			if err := s.run(context.Background(), parts, 8); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// emptyFloats is a tensor of zeros that ends with a benchmark.
func emptyFloats(b *testing.B, rows, columns int) *ort.Tensor[float32] {
	b.Helper()
	t, err := ort.NewEmptyTensor[float32](ort.NewShape(int64(rows), int64(columns)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = t.Destroy() })
	return t
}
