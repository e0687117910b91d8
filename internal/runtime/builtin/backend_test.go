package builtin

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/runtime/fake"
	"github.com/sluice-serving/sluice/internal/tensor/ops"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

func functions(t *testing.T) map[serving.VariantID]*ops.Function {
	t.Helper()
	out := make(map[serving.VariantID]*ops.Function)
	for v, name := range []string{"argmax", "track"} {
		f, err := ops.New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		out[serving.VariantID(v)] = f
	}
	return out
}

func floats(name string, values []float32, shape ...int64) []tensor.Tensor {
	t := tensor.Tensor{Name: name, DType: tensor.FP32, Shape: shape}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
	}
	return []tensor.Tensor{t}
}

func launch(t *testing.T, b *Backend, vs ...serving.VariantID) dataplane.Runner {
	t.Helper()
	r, err := b.Launch(t.Context(), dataplane.InstanceSpec{ID: 1, Variants: vs, BatchLimit: 4, Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEveryPartIsAnsweredByItself(t *testing.T) {
	r := launch(t, New(NewFunctions(functions(t)), nil), 0)
	var wg sync.WaitGroup
	for range 2 { // as many at once as there are slots
		wg.Go(func() {
			b := &dataplane.Batch{Variant: 0, Items: 3, Portions: []dataplane.Portion{
				{Query: 1, Items: 2, Inputs: floats("scores", []float32{1, 2, 4, 3}, 2, 2)}, {
					Query: 2, Items: 1, Inputs: floats("scores", []float32{0, 0, 9}, 1, 3),
				}}}
			if err := r.Run(t.Context(), b); err != nil {
				t.Error(err)
				return
			}
			for k, want := range [][]byte{{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {2, 0, 0, 0, 0, 0, 0, 0}} {
				if o := b.Portions[k].Outputs[0]; o.Name != "indices" || !bytes.Equal(o.Data, want) ||
					b.Portions[k].State != nil {
					t.Errorf("part %d: %+v", k, o)
				}
			}
		})
	}
	wg.Wait()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestStateIsHandedOn(t *testing.T) {
	r := launch(t, New(NewFunctions(functions(t)), nil), 1)
	var state [2][]byte
	for frame, boxes := range [][]float32{{0, 0, 9, 9, 50, 50, 60, 60}, {50, 50, 60, 60, 0, 0, 9, 9}} {
		// Two streams in one batch: they know nothing of each other.
		b := &dataplane.Batch{Variant: 1, Items: 2, Portions: []dataplane.Portion{
			{Query: 1, Items: 1, Inputs: floats("boxes", boxes, 2, 4), State: state[0]}, {
				Query: 2, Items: 1, Inputs: floats("boxes", boxes[:4], 1, 4), State: state[1],
			}}}
		if err := r.Run(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		state[0], state[1] = b.Portions[0].State, b.Portions[1].State
		want := [][]byte{{1, 2}, {2, 1}}[frame]
		if d := b.Portions[0].Outputs[0].Data; d[0] != want[0] || d[8] != want[1] {
			t.Errorf("frame %d: ids %v", frame, d)
		}
		if d := b.Portions[1].Outputs[0].Data; d[0] != byte(frame+1) {
			t.Errorf("frame %d of the second stream: ids %v", frame, d)
		}
	}
}

func TestModelsAreLeftToOthers(t *testing.T) {
	models, err := fake.New(fake.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b := New(NewFunctions(functions(t)), models)
	launch(t, b, 7)
	launch(t, b, 0)
	if s := models.Stats(); s.Launches != 1 {
		t.Errorf("%+v", s)
	}
	for want, vs := range map[string][]serving.VariantID{"some of its variants [0 7]": {0, 7}} {
		if _, err := b.Launch(t.Context(), dataplane.InstanceSpec{ID: 1, Variants: vs, BatchLimit: 4, Slots: 2}); err ==
			nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := New(NewFunctions(functions(t)), nil).Launch(t.Context(),
		dataplane.InstanceSpec{ID: 1, Variants: []serving.VariantID{7}}); err == nil {
		t.Error("a model without a backend")
	}
}

func TestWhatCannotRun(t *testing.T) {
	r := launch(t, New(NewFunctions(functions(t)), nil), 0)
	one := func() *dataplane.Batch {
		return &dataplane.Batch{
			Portions: []dataplane.Portion{{Query: 9, Items: 1, Inputs: floats("scores", []float32{1}, 1, 1)}},
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(over, one()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b := one()
	b.Portions[0].Inputs = nil
	if err := r.Run(t.Context(), b); err == nil ||
		!strings.Contains(err.Error(), `query 9: argmax: input "scores" is missing`) {
		t.Error(err)
	}
	if err := r.Load(t.Context(), 7, 1); err == nil {
		t.Error("a model was loaded")
	}
	if err := errors.Join(r.Load(t.Context(), 1, 1), r.Unload(t.Context(), 0)); err != nil {
		t.Error(err)
	}
	if err := r.Unload(t.Context(), 0); err == nil {
		t.Error("unloaded twice")
	}
	if err := r.Run(t.Context(), one()); err == nil || errors.Is(err, dataplane.ErrInstanceLost) {
		t.Errorf("a variant that is not loaded: %v", err)
	}
}
