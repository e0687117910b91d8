package loadgen

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/tensor"
)

// The open dimensions of random inputs follow the length of each query: that of a text, and both of a picture, whose
// product it is. Masks are all 1, and other dimensions stay. Without a length they are 1.
func TestInputsHaveTheLengthsOfTheirQueries(t *testing.T) {
	s, err := Synthetic([]tensor.Spec{
		{Name: "ids", DType: tensor.Int64, Shape: []int64{-1, -1}},
		{Name: "mask", DType: tensor.Int32, Shape: []int64{-1, -1}},
		{Name: "words", DType: tensor.Bytes, Shape: []int64{-1, -1, 2}},
		{Name: "picture", DType: tensor.FP32, Shape: []int64{-1, 3, -1, -1}},
		{Name: "fixed", DType: tensor.FP32, Shape: []int64{-1, 5}},
	}, 4, 1, "mask")
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[int32][][]int64{
		0:   {{2, 1}, {2, 1}, {2, 1, 2}, {2, 3, 1, 1}, {2, 5}},
		1:   {{2, 1}, {2, 1}, {2, 1, 2}, {2, 3, 1, 1}, {2, 5}},
		7:   {{2, 7}, {2, 7}, {2, 7, 2}, {2, 3, 3, 2}, {2, 5}}, // 6 pixels are as near as 3 rows come
		900: {{2, 900}, {2, 900}, {2, 900, 2}, {2, 3, 30, 30}, {2, 5}},
	}
	synctest.Test(t, func(t *testing.T) {
		var arrivals []workload.Arrival
		for n := range shapes {
			arrivals = append(arrivals, workload.Arrival{At: serving.Time(len(arrivals)) * 1e6, Items: 2, Length: n,
				Variant: serving.None, Sample: 3})
		}
		f := &fake{infer: func(_ context.Context, _ int, r *Request) (*Answer, error) { return echo(r), nil }}
		if _, err := Run(t.Context(), f, oneApp(s), workload.FromSlice(arrivals), Options{pacer: coarse}); err != nil {
			t.Fatal(err)
		}
		for k := range f.seen {
			var got [][]int64
			for _, x := range f.seen[k].Inputs {
				if err := x.Validate(); err != nil {
					t.Error(err)
				}
				got = append(got, x.Shape)
			}
			if want := shapes[arrivals[k].Length]; !reflect.DeepEqual(got, want) {
				t.Errorf("length %d: shapes %v, want %v", arrivals[k].Length, got, want)
			}
			mask := f.seen[k].Inputs[1]
			if want := bytes.Repeat([]byte{1, 0, 0, 0}, len(mask.Data)/4); !bytes.Equal(mask.Data, want) {
				t.Errorf("length %d: the mask is %v", arrivals[k].Length, mask.Data)
			}
		}
	})
}

// A length that inputs cannot have is refused before anything is sent.
func TestLengthsThatInputsCannotHave(t *testing.T) {
	random, err := Synthetic([]tensor.Spec{{Name: "ids", DType: tensor.Int64, Shape: []int64{-1, 64, -1}}}, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		samples *Samples
		length  int32
		want    string
	}{
		{numbers(3), 5, `app "digits", a query of 1 items of length 5: the inputs that are sent have no open`},
		{random, 1 << 30, "of length 1073741824: "},
	} {
		f := &fake{}
		load := workload.FromSlice([]workload.Arrival{{Items: 1, Length: c.length, Variant: serving.None, Sample: -1}})
		if _, err := Run(t.Context(), f, oneApp(c.samples), load, Options{pacer: coarse}); err == nil ||
			!strings.Contains(err.Error(), c.want) || len(f.seen) > 0 {
			t.Errorf("%v, %d sent, want none and %q", err, len(f.seen), c.want)
		}
	}
}
