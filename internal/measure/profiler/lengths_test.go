package profiler

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/tensor"
)

// reader is a backend whose batches take 1 ms and, for each element, 10 us; it takes no rows longer than most, and
// multiples alone.
type reader struct{ most, multiple int64 }

func (r reader) Launch(context.Context, dataplane.InstanceSpec) (dataplane.Runner, error) {
	return r, nil
}
func (reader) Load(context.Context, serving.VariantID, int) error { return nil }
func (reader) Unload(context.Context, serving.VariantID) error    { return nil }
func (reader) Close() error                                       { return nil }

func (r reader) Run(_ context.Context, b *dataplane.Batch) error {
	took := ms
	for k := range b.Portions {
		ids, mask := &b.Portions[k].Inputs[0], &b.Portions[k].Inputs[1]
		if ids.Shape[1] > r.most || ids.Shape[1]%r.multiple != 0 || !slices.Equal(ids.Shape, mask.Shape) ||
			ids.Validate() != nil || mask.Validate() != nil {
			return errors.New("no such position")
		}
		took += time.Duration(ids.Shape[1]) * 10 * time.Microsecond
	}
	time.Sleep(took)
	return nil
}

// reading is the measurement of a model that takes rows of up to most elements, multiples of a number alone.
func reading(most, multiple int64) Config {
	shape := []int64{-1, -1}
	return Config{Spec: world(1, 8, time.Second), Backend: reader{most, multiple}, Seed: 1,
		Length: func(serving.VariantID) *tensor.Length { return &tensor.Length{Input: "ids", Axes: []int{1}} },
		Tensors: func(serving.VariantID) ([]tensor.Spec, bool, error) {
			return []tensor.Spec{{Name: "ids", DType: tensor.Int64, Shape: shape},
				{Name: "mask", DType: tensor.Int64, Shape: shape}}, true, nil
		}}
}

// A model whose inputs have a length is measured at three: the reference, a quarter or, where it does not take that,
// three times as much, and four times as much or twice. The fit of what was measured is what the model does.
func TestLengthsAreMeasured(t *testing.T) {
	for takes, want := range map[[2]int64][]int32{
		{1000, 1}: {24, 384}, {200, 1}: {24, 192}, {100, 1}: {24}, {1000, 32}: {288, 384},
	} {
		most := takes[0]
		synctest.Test(t, func(t *testing.T) {
			f, err := Run(t.Context(), reading(most, takes[1]), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []int32
			for _, p := range f.Lengths {
				got = append(got, p.Length)
				took := float64(ms+time.Duration(p.Batch)*time.Duration(p.Length)*10*time.Microsecond) / 1e3
				if p.Reference != 96 || math.Abs(p.Mean-took) > 1 || p.Batch != 1 && p.Batch != 8 {
					t.Errorf("rows of up to %d: %+v, want %v us", most, p, took)
				}
			}
			if slices.Sort(got); len(got) != 2*len(want) || !slices.Equal(slices.Compact(got), want) {
				t.Errorf("rows of up to %d: lengths %v, want each of %v for two batches", most, got, want)
			}
			if len(f.Failures) > 0 || len(f.Points) != 4 {
				t.Errorf("rows of up to %d: %d points, failures %v", most, len(f.Points), f.Failures)
			}
			fits, err := f.LengthFits()
			if err != nil || len(fits) != 1 || fits[0].Fitted != (most > 100) || fits[0].Error > 0.01 ||
				!slices.Equal(fits[0].Lengths, slices.Sorted(slices.Values(append([]int32{96}, want...)))) {
				t.Errorf("rows of up to %d: fits %+v, %v", most, fits, err)
			}
			m, err := f.Measurements(world(1, 8, time.Second))
			if err != nil {
				t.Fatal(err)
			}
			s := profile.NewStretches(world(1, 8, time.Second), m)
			if off, ok := s.Error(0, 0); ok != (most > 100) || off > 0.01 {
				t.Errorf("rows of up to %d: fitted %v, off by %v", most, ok, off)
			}
			if got := s.Latency(0, 0, ms+96*4*10*time.Microsecond, 150); most > 100 &&
				(got-(ms+150*4*10*time.Microsecond)).Abs() > got/20 {
				t.Errorf("rows of up to %d: four of length 150 take %v", most, got)
			}
		})
	}
}

// Inputs that are given with a model are the reference, and are cut and repeated along all of their open dimensions.
func TestGivenInputsAreScaled(t *testing.T) {
	picture := tensor.Tensor{Name: "x", DType: tensor.Uint8, Shape: []int64{1, 2, 2, 2}, Data: []byte("abcdefgh")}
	spec := tensor.Spec{Name: "x", DType: tensor.Uint8, Shape: []int64{-1, 2, -1, -1}}
	s := &source{specs: []tensor.Spec{spec}, counted: true, length: &tensor.Length{Input: "x", Axes: []int{2, 3}}}
	b := &dataplane.Batch{Items: 1, Portions: []dataplane.Portion{{Items: 1, Inputs: []tensor.Tensor{picture}}}}
	for by, want := range map[float64]string{0.25: "ae", 1: "abcdefgh", 4: "ababcdcdababcdcdefefghghefefghgh"} {
		got, err := s.scaled(b, by)
		if err != nil {
			t.Fatal(err)
		}
		in := got.Portions[0].Inputs[0]
		if string(in.Data) != want || in.Validate() != nil {
			t.Errorf("scaled by %v: %q of shape %v, want %q", by, in.Data, in.Shape, want)
		}
	}
	if string(picture.Data) != "abcdefgh" || picture.Shape[3] != 2 {
		t.Error("the given input has changed")
	}
}

// Points of other lengths survive a file, a merge and a renaming, and impossible ones are refused.
func TestLengthsInAFile(t *testing.T) {
	one := func(reference, length int32, batch int, mean float64) LengthPoint {
		return LengthPoint{"a", "cpu", reference, length, batch, 3, mean}
	}
	f := &File{Version: Version, DeviceType: "cpu", Lengths: []LengthPoint{one(64, 256, 1, 9), one(64, 16, 1, 2)}}
	var b bytes.Buffer
	if err := f.Encode(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Decode(&b)
	if err != nil || len(again.Lengths) != 2 || again.Lengths[0].Length != 16 {
		t.Fatalf("%+v, %v", again, err)
	}
	anew := &File{Version: Version, Lengths: []LengthPoint{one(96, 24, 1, 3)}}
	merged, err := Merge(f, anew)
	if err != nil || len(merged.Lengths) != 1 || merged.Lengths[0].Reference != 96 || len(f.Lengths) != 2 {
		t.Errorf("measured anew: %+v, %v", merged, err)
	}
	if kept, _ := f.Only(&serving.Spec{}); len(kept.Lengths) != 0 {
		t.Errorf("of a spec without the variant: %+v", kept.Lengths)
	}
	if f.Rename("b", "gpu"); f.Lengths[1].Variant != "b" || f.Lengths[1].DeviceType != "gpu" {
		t.Errorf("renamed: %+v", f.Lengths)
	}
	for want, bad := range map[string]LengthPoint{
		"length is 64":   one(64, 64, 1, 9),
		"reference 0":    one(0, 64, 1, 9),
		"batch is 0":     one(64, 16, 0, 9),
		"mean_us is NaN": one(64, 16, 1, math.NaN()),
		"neither may be": {},
	} {
		bad := &File{Version: Version, Lengths: []LengthPoint{bad}}
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", bad.Lengths, err, want)
		}
	}
}
