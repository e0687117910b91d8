//go:build cgo

package onnx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

func TestEveryTypeComesBackUnchanged(t *testing.T) {
	for _, d := range onnxmodel.DTypes() {
		t.Run(d.String(), func(t *testing.T) {
			dt := tensor.ParseDType(d.String())
			// The first variant's shape is known but for the batch, the second's is open, the third's has no batch
			// dimension.
			in := launch(t, 8, 1, Model{
				Path: write(t, onnxmodel.Identity(d, -1, 3)),
			}, Model{Path: write(t, onnxmodel.Identity(d, -1, -1, 2))},
				Model{Path: write(t, onnxmodel.Identity(d, 4))})
			for name, b := range map[string]*dataplane.Batch{
				"one": one(0, sample("input", dt, 1, 1, 3)),
				"several": one(0, sample("input", dt, 1, 2, 3), sample("input", dt, 2, 1, 3),
					sample("input", dt, 3, 4, 3)),
				"open":         one(1, sample("input", dt, 4, 2, 5, 2)),
				"open several": one(1, sample("input", dt, 4, 2, 5, 2), sample("input", dt, 5, 3, 5, 2)),
				"ragged": one(1, sample("input", dt, 4, 2, 5, 2), sample("input", dt, 5, 3, 1, 2),
					sample("input", dt, 6, 1, 5, 2)),
				"no batch": {
					Variant: 2, Items: 1, Portions: []dataplane.Portion{
						{Items: 1, Inputs: []tensor.Tensor{sample("input", dt, 9, 4)}},
					},
				},
			} {
				for round := range 2 { // a second run finds the buffers used
					if err := in.Run(t.Context(), b); err != nil {
						t.Fatalf("%s, round %d: %v", name, round, err)
					}
					for i, p := range b.Portions {
						if len(p.Outputs) != 1 {
							t.Fatalf("%s: part %d has %d outputs", name, i, len(p.Outputs))
						}
						got, want := p.Outputs[0], p.Inputs[0]
						if got.Name != "output" || got.DType != dt || !slices.Equal(got.Shape, want.Shape) ||
							!bytes.Equal(got.Data, want.Data) {
							t.Errorf("%s: part %d: got %+v, gave %+v", name, i, got, want)
						}
					}
				}
			}
		})
	}
}

func TestOutputsOutliveTheRun(t *testing.T) {
	in := launch(t, 8, 1, Model{Path: write(t, onnxmodel.Identity(onnxmodel.Float32, -1, 2))})
	a := one(0, floats("input", []int64{1, 2}, 1, 2), floats("input", []int64{2, 2}, 3, 4, 5, 6))
	if err := in.Run(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	want := [][]byte{bytes.Clone(a.Portions[0].Outputs[0].Data), bytes.Clone(a.Portions[1].Outputs[0].Data)}
	for i := range a.Portions {
		clear(a.Portions[i].Inputs[0].Data) // the client's memory is reused
	}
	for range 10 {
		if err := in.Run(t.Context(), one(0, floats("input", []int64{3, 2}, 9, 9, 9, 9, 9, 9))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range want {
		if !bytes.Equal(a.Portions[i].Outputs[0].Data, want[i]) {
			t.Errorf("part %d changed after its run", i)
		}
	}
	// An append by one part's owner must not run into the next part's rows.
	_ = append(a.Portions[0].Outputs[0].Data, 0xff)
	if !bytes.Equal(a.Portions[1].Outputs[0].Data, want[1]) {
		t.Error("appending to part 0 changed part 1")
	}
}

func TestLargeInputsAtAnyAlignment(t *testing.T) {
	in := launch(t, 4, 1, Model{Path: write(t, onnxmodel.Identity(onnxmodel.Float64, -1, 4096))})
	whole := make([]byte, 2*4096*8+8)
	base := int(-uintptr(unsafe.Pointer(&whole[0])) & 7)
	for off := range 8 {
		data := whole[off : off+4096*8]
		for i := range data {
			data[i] = byte(i*31+off) & 0x3f
		}
		b := one(0, tensor.Tensor{Name: "input", DType: tensor.FP64, Shape: []int64{1, 4096}, Data: data})
		if err := in.Run(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Portions[0].Outputs[0].Data, data) {
			t.Errorf("offset %d (aligned: %t): output differs", off, off == base)
		}
	}
}

func TestSeveralInputsInAnyOrder(t *testing.T) {
	in := launch(t, 4, 1, Model{Path: write(t, onnxmodel.Add(onnxmodel.Float32, -1, 1))})
	b := &dataplane.Batch{Items: 3, Portions: []dataplane.Portion{
		{Query: 1, Items: 1, Inputs: []tensor.Tensor{floats("a", []int64{1, 1}, 1), floats("b", []int64{1, 1}, 10)}},
		{
			Query: 2, Items: 2, Inputs: []tensor.Tensor{
				floats("b", []int64{2, 1}, 20, 30), floats("a", []int64{2, 1}, 2, 3),
			},
		},
	}}
	if err := in.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if want := floats("", nil, 11).Data; !bytes.Equal(b.Portions[0].Outputs[0].Data, want) {
		t.Errorf("part 0: %v", b.Portions[0].Outputs[0])
	}
	if want := floats("", nil, 22, 33).Data; !bytes.Equal(b.Portions[1].Outputs[0].Data, want) {
		t.Errorf("part 1: %v", b.Portions[1].Outputs[0])
	}
}

func TestWrongInputsAreRefusedAndHarmless(t *testing.T) {
	in := launch(t, 4, 1,
		Model{Path: write(t, onnxmodel.Identity(onnxmodel.Float32, -1, 2))},
		Model{Path: write(t, onnxmodel.Identity(onnxmodel.String, -1))},
		Model{Path: write(t, onnxmodel.Identity(onnxmodel.Bool, -1))},
		Model{Path: write(t, onnxmodel.Identity(onnxmodel.Float32, 2))},
	)
	good := floats("input", []int64{1, 2}, 1, 2)
	with := func(change func(*dataplane.Batch)) *dataplane.Batch {
		b := one(0, good)
		change(b)
		return b
	}
	edit := func(change func(*tensor.Tensor)) *dataplane.Batch {
		return with(func(b *dataplane.Batch) { change(&b.Portions[0].Inputs[0]) })
	}
	for _, c := range []struct {
		want string // part of the message
		b    *dataplane.Batch
	}{
		{"datatype is INT32, want FP32", edit(func(t *tensor.Tensor) { t.DType = tensor.Int32 })},
		{"datatype is INVALID", edit(func(t *tensor.Tensor) { t.DType = tensor.Invalid })},
		{"datatype is", edit(func(t *tensor.Tensor) { t.DType = 200 })},
		{"shape is [1,3]", edit(func(t *tensor.Tensor) { t.Shape = []int64{1, 3} })},
		{"shape is [2]", edit(func(t *tensor.Tensor) { t.Shape = []int64{2} })},
		{"shape is []", edit(func(t *tensor.Tensor) { t.Shape = nil })},
		{"shape is [-1,2]", edit(func(t *tensor.Tensor) { t.Shape = []int64{-1, 2} })},
		{"the query has 1 items", edit(func(t *tensor.Tensor) { t.Shape = []int64{2, 2}; t.Data = make([]byte, 16) })},
		{"4 bytes of data", edit(func(t *tensor.Tensor) { t.Data = t.Data[:4] })},
		{"0 bytes of data", edit(func(t *tensor.Tensor) { t.Data = nil })},
		{`input "input" is missing`, edit(func(t *tensor.Tensor) { t.Name = "x" })},
		{"has 0 inputs", with(func(b *dataplane.Batch) { b.Portions[0].Inputs = nil })},
		{"has 2 inputs", with(func(b *dataplane.Batch) { b.Portions[0].Inputs = []tensor.Tensor{good, good} })},
		{"variant 9 is not loaded", with(func(b *dataplane.Batch) { b.Variant = 9 })},
		{"says 2 items", with(func(b *dataplane.Batch) { b.Items = 2 })},
		{"says 0 items", &dataplane.Batch{}},
		{
			"claims 255 bytes", one(1, tensor.Tensor{
				Name: "input", DType: tensor.Bytes, Shape: []int64{1}, Data: []byte{255, 0, 0, 0},
			}),
		},
		{
			"1 BYTES elements", one(1, tensor.Tensor{
				Name: "input", DType: tensor.Bytes, Shape: []int64{2}, Data: tensor.AppendBytes(nil, []byte("a")),
			}),
		},
		{
			"element 0 is the byte 2", one(2, tensor.Tensor{
				Name: "input", DType: tensor.Bool, Shape: []int64{1}, Data: []byte{2},
			}),
		},
		{"one query at a time", one(3, floats("input", []int64{2}, 1, 2), floats("input", []int64{2}, 1, 2))},
	} {
		err := in.Run(t.Context(), c.b)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got error %v, want one that says %q", err, c.want)
		}
		for _, p := range c.b.Portions {
			if p.Outputs != nil {
				t.Errorf("%s: a refused part has outputs", c.want)
			}
		}
	}
	if err := in.Run(t.Context(), one(0, good)); err != nil {
		t.Errorf("a good batch after the bad ones: %v", err)
	}
}

func TestModelFailureIsAnError(t *testing.T) {
	// Gather accepts only rows that exist; the example keeps warm-up inside them.
	g := onnxmodel.NewGraph("gather").Initializer("table", []float32{1, 2, 3}, 3).
		Input("i", onnxmodel.Int64, -1).Node("Gather", []string{"table", "i"}, []string{"y"}).Output("y",
		onnxmodel.Float32, -1)
	in := launch(t, 2, 1, Model{Path: write(t, g)})
	index := func(i byte) *dataplane.Batch {
		return one(0, tensor.Tensor{
			Name: "i", DType: tensor.Int64, Shape: []int64{1}, Data: []byte{i, 0, 0, 0, 0, 0, 0, 0},
		})
	}
	if err := in.Run(t.Context(), index(100)); err == nil || errors.Is(err, dataplane.ErrInstanceLost) {
		t.Errorf("a batch that the model refuses ended with %v", err)
	}
	ok := index(2)
	if err := in.Run(t.Context(), ok); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(ok.Portions[0].Outputs[0].Data, floats("", nil, 3).Data) {
		t.Errorf("got %v", ok.Portions[0].Outputs[0])
	}
}

func TestBadModelsAreRefused(t *testing.T) {
	junk := filepath.Join(t.TempDir(), "junk.onnx")
	if err := os.WriteFile(junk, []byte("not a model"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := write(t, onnxmodel.Identity(onnxmodel.Float32, -1, -1))
	first := onnxmodel.NewGraph("first").Input("x", onnxmodel.Float32, -1, 2).InitializerRaw("keep", onnxmodel.Bool,
		[]byte{1}, 1).
		Node("Compress", []string{"x", "keep"}, []string{"y"}, onnxmodel.AttrInt("axis", 0)).Output("y",
		onnxmodel.Float32, -1, 2)
	for _, c := range []struct {
		want string
		m    Model
	}{
		{"no/such/file", Model{Path: "no/such/file"}},
		{"junk.onnx", Model{Path: junk}},
		{"does not batch", Model{Path: write(t, first)}},
		{"no such input", Model{Path: id, Inputs: []tensor.Spec{{Name: "nope"}}}},
		{"configured as INT8", Model{Path: id, Inputs: []tensor.Spec{{Name: "input", DType: tensor.Int8}}}},
		{"configured with shape [-1]", Model{Path: id, Inputs: []tensor.Spec{{Name: "input", Shape: []int64{-1}}}}},
		{
			"configured with shape [-2 1]", Model{
				Path: id, Outputs: []tensor.Spec{{Name: "output", Shape: []int64{-2, 1}}},
			},
		},
		{"example of 4 items", Model{Path: id, Example: func(int) []tensor.Tensor { return nil }}},
	} {
		r, err := tryLaunch(t, 4, 1, c.m)
		if err == nil {
			_ = r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got error %v, want one that says %q", err, c.want)
		}
	}
}

func TestConfiguredShapeIsHeld(t *testing.T) {
	in := launch(t, 4, 1, Model{
		Path:    write(t, onnxmodel.Identity(onnxmodel.Float16, -1, -1)),
		Inputs:  []tensor.Spec{{Name: "input", DType: tensor.FP16, Shape: []int64{-1, 3}}},
		Outputs: []tensor.Spec{{Name: "output", DType: tensor.FP16, Shape: []int64{-1, 3}}},
	})
	if err := in.Run(t.Context(), one(0, sample("input", tensor.FP16, 1, 1, 2))); err == nil {
		t.Error("a shape that the configuration forbids was accepted")
	}
	if err := in.Run(t.Context(), one(0, sample("input", tensor.FP16, 1, 1, 3))); err != nil {
		t.Error(err)
	}
	i, err := in.b.Interface(0)
	if err != nil || !i.Batched || len(i.Inputs) != 1 || !slices.Equal(i.Inputs[0].Shape, []int64{-1, 3}) ||
		i.Outputs[0].DType != tensor.FP16 {
		t.Errorf("interface is %+v, %v", i, err)
	}
}

func TestNoBatchTakesOneQueryOfAnyLength(t *testing.T) {
	in := launch(t, 1, 1, Model{Path: write(t, onnxmodel.Identity(onnxmodel.Float32, -1)), NoBatch: true})
	b := &dataplane.Batch{
		Items: 1, Portions: []dataplane.Portion{
			{Items: 1, Inputs: []tensor.Tensor{floats("input", []int64{5}, 1, 2, 3, 4, 5)}},
		},
	}
	if err := in.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Portions[0].Outputs[0].Data, b.Portions[0].Inputs[0].Data) {
		t.Errorf("got %v", b.Portions[0].Outputs[0])
	}
}

func TestEmptyTensors(t *testing.T) {
	in := launch(t, 2, 1, Model{Path: write(t, onnxmodel.Identity(onnxmodel.Float32, -1, -1))}, Model{
		Path: write(t, onnxmodel.Identity(onnxmodel.String, -1, -1)),
	},
		Model{Path: write(t, onnxmodel.Identity(onnxmodel.Float16, -1, -1))})
	for v, d := range []tensor.DType{tensor.FP32, tensor.Bytes, tensor.FP16} {
		b := one(serving.VariantID(v), tensor.Tensor{Name: "input", DType: d, Shape: []int64{2, 0}})
		if err := in.Run(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if o := b.Portions[0].Outputs[0]; !slices.Equal(o.Shape, []int64{2, 0}) || len(o.Data) != 0 {
			t.Errorf("%s: got %+v", d, o)
		}
	}
	// The shape of an FP16 output is learned from the runtime, also where it has several dimensions without a size.
	in = launch(t, 8, 1, Model{Path: write(t, onnxmodel.Identity(onnxmodel.Float16, -1, -1, -1))},
		Model{Path: write(t, onnxmodel.Identity(onnxmodel.Float16, -1, -1)), NoBatch: true})
	for _, c := range []struct {
		v     serving.VariantID
		shape []int64
	}{{0, []int64{1, 1, 0}}, {0, []int64{8, 0, 1}}, {0, []int64{8, 1, 0}}, {0, []int64{1, 0, 0}},
		{1, []int64{1, 0}}, {1, []int64{0, 1}}, {1, []int64{0, 0}}} {
		b := &dataplane.Batch{Variant: c.v, Items: 1, Portions: []dataplane.Portion{{Items: 1,
			Inputs: []tensor.Tensor{{Name: "input", DType: tensor.FP16, Shape: c.shape}}}}}
		if c.v == 0 {
			b.Items, b.Portions[0].Items = int(c.shape[0]), int(c.shape[0])
		}
		if err := in.Run(t.Context(), b); err != nil {
			t.Errorf("shape %v: %v", c.shape, err)
		} else if o := b.Portions[0].Outputs[0]; !slices.Equal(o.Shape, c.shape) {
			t.Errorf("shape %v came back as %v", c.shape, o.Shape)
		}
	}
}

func TestShapesOfSeveralOutputsAreLearned(t *testing.T) {
	g := onnxmodel.NewGraph("three")
	for _, n := range []string{"c", "a", "b"} { // not in the order in which the nodes run
		g.Input(n, onnxmodel.Float16, -1, -1, -1).Output("of "+n, onnxmodel.Float16, -1, -1, -1)
	}
	for _, n := range []string{"a", "b", "c"} {
		g.Node("Identity", []string{n}, []string{"of " + n})
	}
	in := launch(t, 8, 1, Model{Path: write(t, g)})
	for _, sizes := range [][3][2]int64{{{1, 2}, {2, 1}, {1, 1}}, {{0, 1}, {1, 0}, {3, 3}}, {{1, 1}, {1, 1}, {2, 5}}} {
		b := &dataplane.Batch{Items: 2, Portions: []dataplane.Portion{{Items: 2}}}
		for k, n := range []string{"c", "a", "b"} {
			b.Portions[0].Inputs = append(b.Portions[0].Inputs, sample(n, tensor.FP16, k, 2, sizes[k][0], sizes[k][1]))
		}
		if err := in.Run(t.Context(), b); err != nil {
			t.Fatalf("%v: %v", sizes, err)
		}
		for k, o := range b.Portions[0].Outputs {
			if want := b.Portions[0].Inputs[k]; !slices.Equal(o.Shape, want.Shape) || !bytes.Equal(o.Data, want.Data) {
				t.Errorf("%v: output %d is %+v, gave %+v", sizes, k, o, want)
			}
		}
	}
}

func TestConcurrentRunsLoadsAndUnloads(t *testing.T) {
	path := write(t, onnxmodel.Identity(onnxmodel.Float32, -1, 64))
	in := launch(t, 4, 2, Model{Path: path}, Model{Path: path})
	var wg sync.WaitGroup
	for g := range 4 { // more than slots: the others wait their turn
		wg.Go(func() {
			for i := range 100 {
				b := one(0, sample("input", tensor.FP32, g*1000+i, int64(1+i%2), 64),
					sample("input", tensor.FP32, i, 1, 64))
				if err := in.Run(t.Context(), b); err != nil {
					t.Error(err)
					return
				}
				for k := range b.Portions {
					if !bytes.Equal(b.Portions[k].Outputs[0].Data, b.Portions[k].Inputs[0].Data) {
						t.Error("a batch got another's answer")
						return
					}
				}
			}
		})
	}
	for range 10 {
		if err := in.Unload(t.Context(), 1); err != nil {
			t.Error(err)
		}
		if err := in.Load(t.Context(), 1, 1); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}

// A variant that comes later brings its own batch limit, and a plan may raise one: the size at launch bounds nothing.
func TestBatchesGrowAfterTheLaunch(t *testing.T) {
	path := write(t, onnxmodel.Identity(onnxmodel.Float32, -1, 1))
	in := launch(t, 1, 1, Model{Path: path}, Model{Path: path})
	if err := in.Load(t.Context(), 1, 4); err != nil {
		t.Fatal(err)
	}
	for v := range 2 {
		b := one(serving.VariantID(v), floats("input", []int64{6, 1}, 1, 2, 3, 4, 5, 6))
		if err := in.Run(t.Context(), b); err != nil || b.Portions[0].Outputs[0].Shape[0] != 6 {
			t.Errorf("variant %d: %v", v, err)
		}
	}
}

func TestLifeCycle(t *testing.T) {
	path := write(t, onnxmodel.Identity(onnxmodel.Float32, -1, 1))
	in := launch(t, 2, 1, Model{Path: path})
	if err := in.Load(t.Context(), 0, 1); err != nil {
		t.Errorf("loading what is loaded: %v", err)
	}
	if err := in.Load(t.Context(), 7, 1); err == nil || !strings.Contains(err.Error(), "variant 7") {
		t.Errorf("loading an unknown variant: %v", err)
	}
	if err := in.Unload(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if err := in.Unload(t.Context(), 0); err == nil {
		t.Error("unloaded twice")
	}
	if err := in.Load(t.Context(), 0, 1); err != nil {
		t.Error(err)
	}
	if err := errors.Join(in.Close(), in.Close()); err != nil {
		t.Error(err)
	}
	for _, err := range []error{
		in.Run(t.Context(), one(0, floats("input", []int64{1, 1}, 1))), in.Load(t.Context(), 0, 1),
	} {
		if err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("a closed instance said %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := in.b.Launch(ctx, dataplane.InstanceSpec{
		Variants: []serving.VariantID{0}, BatchLimit: 1, Slots: 1,
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled launch ended with %v", err)
	}
	if _, err := in.b.Launch(t.Context(), dataplane.InstanceSpec{BatchLimit: 1}); err == nil {
		t.Error("an instance without slots was launched")
	}
}

func TestCancelledRunLeavesTheSlotUsable(t *testing.T) {
	// A chain of products is long enough to be stopped in the middle, at a node's end.
	const n = 192
	g := onnxmodel.NewGraph("chain").Input("x", onnxmodel.Float32, -1, n).Initializer("w", make([]float32, n*n), n, n)
	from := "x"
	for i := range 400 {
		to := fmt.Sprintf("h%d", i)
		g.Node("MatMul", []string{from, "w"}, []string{to})
		from = to
	}
	g.Node("Identity", []string{from}, []string{"y"}).Output("y", onnxmodel.Float32, -1, n)
	in := launch(t, 64, 1, Model{Path: write(t, g)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- in.Run(ctx, one(0, floats("x", []int64{64, n}, make([]float32, 64*n)...))) }()
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run ended with %v", err)
	}
	if err := in.Run(t.Context(), one(0, floats("x", []int64{1, n}, make([]float32, n)...))); err != nil {
		t.Errorf("the run after a cancelled one: %v", err)
	}
}

func TestProviderAndLibraryErrorsSayWhatIsMissing(t *testing.T) {
	needRuntime(t)
	on := func(providers ...string) *Backend {
		b, err := New(Config{Device: func(serving.WorkerID) Device { return Device{Providers: providers} }})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if _, _, err := on("abacus").Provider(0); err == nil || !strings.Contains(err.Error(), `"abacus"`) {
		t.Errorf("unknown provider: %v", err)
	}
	if _, err := New(Config{}); err != nil {
		t.Fatal(err)
	}
	if Version() == "" {
		t.Error("no version")
	}
	if _, err := New(Config{Library: "/no/such/lib.so"}); err == nil ||
		!strings.Contains(err.Error(), "/no/such/lib.so") {
		t.Errorf("a second library: %v", err)
	}
	if _, _, err := on(CUDA).Provider(0); err == nil {
		t.Skip("this library has CUDA")
	} else if !strings.Contains(err.Error(), "SLUICE_ONNXRUNTIME") {
		t.Errorf("missing CUDA: %v", err)
	}
	if _, err := on(CUDA).Launch(t.Context(), dataplane.InstanceSpec{Slots: 1, BatchLimit: 1}); err == nil {
		t.Error("an instance started on a provider that the library lacks")
	}
	name, passed, err := on(CUDA, CPU).Provider(0)
	if name != CPU || err != nil || passed == nil || !strings.Contains(passed.Error(), "provider cuda") {
		t.Errorf("with a fallback: %q, passed over because of %v, error %v", name, passed, err)
	}
}

func TestErrorsOfMemoryAreToldFromLosses(t *testing.T) {
	for text, want := range map[string]error{
		"CUDA failure 2: out of memory ; GPU=0":                      dataplane.ErrOutOfMemory,
		"CUDA failure 700: an illegal memory access was encountered": dataplane.ErrInstanceLost,
		"the input tensor cannot be reshaped":                        nil,
	} {
		err := classified(errors.New(text), CUDA)
		for _, kind := range []error{dataplane.ErrOutOfMemory, dataplane.ErrInstanceLost} {
			if errors.Is(err, kind) != errors.Is(want, kind) {
				t.Errorf("%q is %v", text, err)
			}
		}
	}
}

func TestWarmSizes(t *testing.T) {
	for limit, want := range map[int][]int{1: {1}, 2: {2, 1}, 3: {3, 2, 1}, 6: {6, 4, 2, 1}, 8: {8, 4, 2, 1}} {
		if got := warmSizes(limit, true); !slices.Equal(got, want) {
			t.Errorf("limit %d: %v, want %v", limit, got, want)
		}
	}
	if got := warmSizes(8, false); !slices.Equal(got, []int{1}) {
		t.Errorf("without a batch dimension: %v", got)
	}
}

func TestRowBytesNeverOverflows(t *testing.T) {
	s := &tensor.Spec{DType: tensor.FP64, Shape: []int64{-1, math.MaxInt64 / 8, 3}}
	if got := rowBytes(s, true); got != -1 {
		t.Errorf("got %d for a shape that cannot be", got)
	}
}
