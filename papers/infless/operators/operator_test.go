package operators

import (
	"context"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

func convolution() *Operator {
	return &Operator{
		Node: &pb.NodeProto{OpType: "Conv", Domain: "com.microsoft.nchwc", Output: []string{"y"},
			Attribute: []*pb.AttributeProto{
				onnxmodel.AttrInts("strides", 2, 2), onnxmodel.AttrString("activation", "Relu"),
			}},
		Opset: 1,
		Inputs: []Operand{
			{DType: onnxmodel.Float32, Shape: []int64{4, 32, 8, 8}},
			{DType: onnxmodel.Float32, Shape: []int64{64, 32, 3, 3}, Constant: true},
			{Absent: true},
		},
	}
}

// TestKey checks the text of a key, and that all that time depends on changes it.
func TestKey(t *testing.T) {
	const want = `com.microsoft.nchwc.Conv@1{activation="Relu" strides=[2,2]}` +
		`(FP32[4,32,8,8] FP32[64,32,3,3]* -)>+ threads=2`
	if got := convolution().Key(2); got != want {
		t.Errorf("key is %s, want %s", got, want)
	}
	seen := map[string]bool{want: true, convolution().Key(1): true}
	for i, change := range []func(*Operator){
		func(o *Operator) { o.Node.OpType = "MaxPool" },
		func(o *Operator) { o.Node.Domain = "" },
		func(o *Operator) { o.Opset = 2 },
		func(o *Operator) { o.Node.Attribute[0].Ints[0] = 1 },
		func(o *Operator) { o.Node.Output = []string{"", "y"} },
		func(o *Operator) { o.Inputs[0].Shape[0] = 8 },
		func(o *Operator) { o.Inputs[1].Constant = false },
		func(o *Operator) { o.Inputs[2] = Operand{DType: onnxmodel.Float32, Shape: []int64{64}} },
		func(o *Operator) { o.Inputs[1].DType = onnxmodel.Float16 },
		func(o *Operator) { o.Inputs[1].Ints = []int64{1} },
		func(o *Operator) { o.Footprint = 1 << 20 },
	} {
		o := convolution()
		change(o)
		if key := o.Key(2); seen[key] {
			t.Errorf("change %d leaves the key as it is: %s", i, key)
		} else {
			seen[key] = true
		}
	}
	turned := convolution()
	turned.Node.Attribute[0], turned.Node.Attribute[1] = turned.Node.Attribute[1], turned.Node.Attribute[0]
	if turned.Key(2) != want {
		t.Error("the order of attributes changes the key")
	}
}

// TestCopies checks how many copies are measured: as many as fill the footprint, or the clock.
func TestCopies(t *testing.T) {
	o := convolution() // 73,728 bytes of weights
	for _, c := range []struct {
		among int64
		us    float64
		want  int
	}{
		{0, 100, 3}, {0, 1e6, 1}, {0, 0, maxCopies}, {1 << 20, 10, 14}, {1 << 20, 1000, 3}, {1 << 20, 1e5, 1},
		{256 << 10, 1, 4},
	} {
		o.Footprint = c.among
		if got := o.copies(c.us); got != c.want {
			t.Errorf("among %d bytes, %v us: %d copies, want %d", c.among, c.us, got, c.want)
		}
	}
}

// TestLookups checks that the rows that are looked up count, not the whole table.
func TestLookups(t *testing.T) {
	o := &Operator{Node: &pb.NodeProto{OpType: "Gather"}, Inputs: []Operand{
		{
			DType: onnxmodel.Float32, Shape: []int64{1000, 16}, Constant: true,
		}, {DType: onnxmodel.Int64, Shape: []int64{2, 5}}}}
	if got := o.weights(); got != 10*16*4 {
		t.Errorf("%d bytes, want those of ten rows", got)
	}
	o.Inputs[1].Shape = []int64{100000}
	if got := o.weights(); got != 1000*16*4 {
		t.Errorf("%d bytes, want the whole table", got)
	}
}

// scripted is a runner that only counts runs.
type scripted struct {
	dataplane.Runner
	runs int
}

func (s *scripted) Run(context.Context, *dataplane.Batch) error { s.runs++; return nil }

// TestRepeatBounds checks that the limits of the number of runs hold, however long runs take.
func TestRepeatBounds(t *testing.T) {
	for _, e := range []Effort{{MinRuns: 5, MaxRuns: 5}, {MinRuns: 3, MaxRuns: 50, MinTime: 1 << 40,
		MaxTime: 1 << 40}} {
		s := &scripted{}
		got, err := repeat(t.Context(), s, &dataplane.Batch{}, e)
		if err != nil || len(got) != e.MaxRuns || s.runs != e.MaxRuns+2 {
			t.Errorf("%+v: %d times of %d runs, %v", e, len(got), s.runs, err)
		}
		for i := 1; i < len(got); i++ {
			if got[i] < got[i-1] {
				t.Errorf("%+v: times are not in order", e)
			}
		}
	}
	if got := Quieter(Timing{1, 5, 2}, Timing{2, 3, 4}); got != (Timing{1, 3, 6}) {
		t.Errorf("the less disturbed is %+v", got)
	}
}

// TestPoint checks that a prediction gives a valid point of a profile, with the offset.
func TestPoint(t *testing.T) {
	p := Prediction{Batch: 4, Threads: 1, Sequential: Timing{Best: 90, Typical: 100, Runs: 12}}
	got := p.Point("v", "cpu")
	if got.Mean < 110-1e-9 || got.Mean > 110+1e-9 || got.P99 != got.Mean || got.Batch != 4 || got.Samples != 12 {
		t.Errorf("%+v", got)
	}
}
