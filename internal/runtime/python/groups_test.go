package python

import (
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/tensor"
)

// The state of a stream goes to the process with a query and comes back with its answer, so that it survives both.
func TestStreams(t *testing.T) {
	r, l := launched(t, `
import numpy as np
class Model:
    inputs = {"x": "FP32[-1,1]"}
    outputs = {"n": "INT64[-1]"}
    streams = True
    def infer(self, inputs, stream):
        assert stream.id == "" or stream.begins == (stream.state is None)
        n = 1 + int(stream.state or 0)
        stream.state = str(n).encode()
        return {"n": np.array([n])}
`, nil)
	b := batchOf([]float32{1}, []float32{1})
	for k, want := range []string{"1", "2", "3"} {
		b.Portions[0].Stream, b.Portions[0].Begins = "a", k == 0
		b.Portions[1].State = nil // of another stream
		if err := r.Run(t.Context(), b); err != nil {
			t.Fatal(err, l.text())
		}
		if got := string(b.Portions[0].State); got != want || string(b.Portions[1].State) != "1" {
			t.Errorf("states %q and %q, want %s and 1", got, b.Portions[1].State, want)
		}
	}
}

// Queries whose shapes differ run one group after the other, and no call has more items than the model takes.
func TestGroups(t *testing.T) {
	r, l := launched(t, `
import numpy as np
class Model:
    inputs = {"x": "FP32[-1,-1]"}
    outputs = {"sums": "FP32[-1]", "calls": "INT64[-1]"}
    max_batch = 3
    def infer(self, inputs):
        x = inputs["x"]
        assert len(x) <= 3
        return {"sums": x.sum(axis=1), "calls": np.full(len(x), len(x))}
`, nil)
	wide := floats("x", 1, 2)
	wide.Shape = []int64{1, 2}
	b := batchOf([]float32{1, 2}, []float32{3}, []float32{4})
	b.Items++
	b.Portions = append(b.Portions, dataplane.Portion{Items: 1, Inputs: []tensor.Tensor{wide}})
	if err := r.Run(t.Context(), b); err != nil {
		t.Fatal(err, l.text())
	}
	for k, want := range []struct {
		sum  float32
		call byte // items of the call that served it
	}{{1, 3}, {3, 3}, {4, 1}, {3, 1}} {
		out := b.Portions[k].Outputs
		if got := values(out[0])[0]; got != want.sum || out[1].Data[0] != want.call {
			t.Errorf("query %d: %v in a call of %d items, want %v", k, got, out[1].Data[0], want)
		}
	}
}

// A worker that says what is not so is not believed.
func TestWrongPlaces(t *testing.T) {
	m, err := newMemory(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	x := &process{memory: m}
	for _, o := range []placed{
		{Name: "y", DataType: "FP32", Shape: []int64{1}, Offset: -4, Size: 4},
		{Name: "y", DataType: "FP32", Shape: []int64{1}, Offset: 1 << 40, Size: 4},
		{Name: "y", DataType: "FP32", Shape: []int64{1}, Offset: 0, Size: 1 << 40},
		{Name: "y", DataType: "FP32", Shape: []int64{2}, Offset: 0, Size: 4},
		{Name: "y", DataType: "FP33", Shape: []int64{1}, Offset: 0, Size: 4},
		{Name: "y", DataType: "BYTES", Shape: []int64{1}, Offset: 0, Size: 2},
		{Name: "y", DataType: "FP32", Shape: []int64{-1}, Offset: 0, Size: 4},
		{Name: "y", DataType: "FP32", Shape: []int64{1 << 62, 4}, Offset: 0, Size: 0},
	} {
		if _, err := x.tensors(&answer{Outputs: []placed{o}}, nil); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
