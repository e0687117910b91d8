package dataplane_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/tensor"
)

// unsure is a cluster with a large and a small variant on one machine. The small one is sure of even numbers alone, and
// right of these as often as the large one.
func unsure(t *testing.T) *simtest.Cluster {
	c := simtest.Uniform(1, 4*time.Millisecond, time.Millisecond, 2*time.Second, 8)
	c.Spec.Variants = append(c.Spec.Variants, serving.Variant{Name: "small", Accuracy: 0.6, MaxBatch: 8})
	s := &c.Spec.Stages[0]
	s.Variants = append(s.Variants, 1)
	s.Confidences = []serving.Confidence{{Variant: 1, Output: "sure", By: serving.ByValue}}
	s.Confidences[0].Bins = []serving.ConfidenceBin{
		{Share: 0.5, Accuracy: 0.25, Others: []serving.VariantAccuracy{{Variant: 0, Accuracy: 0.85}}},
		{From: 0.5, Share: 0.5, Accuracy: 0.95, Others: []serving.VariantAccuracy{{Variant: 0, Accuracy: 0.95}}},
	}
	for n := 1; n <= 8; n++ {
		c.Measurements.Latency = append(c.Measurements.Latency,
			simtest.Point(1, 0, n, 1, time.Millisecond+time.Duration(n)*100*time.Microsecond, 0))
	}
	var err error
	if c.Profile, err = profile.NewTable(c.Spec, c.Measurements, profile.P95); err != nil {
		t.Fatal(err)
	}
	c.Plan.Instances[0].Variants = append(c.Plan.Instances[0].Variants, plan.Variant{Variant: 1, Limit: 8})
	return c
}

// answerTwice gives 10 times each number, and of the large variant one more, also as a text, which zeros make longer
// where the large one gives it.
func answerTwice(_ context.Context, b *dataplane.Batch) error {
	for k := range b.Portions {
		x := &b.Portions[k]
		in := numbers(&x.Inputs[0])
		sure := tensor.Tensor{Name: "sure", DType: tensor.FP32, Shape: []int64{int64(len(in))}}
		text := tensor.Tensor{Name: "text", DType: tensor.Bytes, Shape: sure.Shape}
		for n := range in {
			own := float32(1 - in[n]%2)
			sure.Data = binary.LittleEndian.AppendUint32(sure.Data, math.Float32bits(own))
			in[n] = 10*in[n] + uint64(1-b.Variant)
			text.Data = tensor.AppendBytes(text.Data, fmt.Appendf(nil, "%0*d", 20*(1-b.Variant), in[n]))
		}
		x.Outputs = []tensor.Tensor{values("y", in), text, sure}
	}
	return nil
}

// Of a query of several items each that its first answer is not sure of is answered again, by itself, and has its place
// among the others.
func TestItemsAreAnsweredAgain(t *testing.T) {
	again, odd := 0, 0
	p := planeOf(t, unsure(t), &runtime{run: answerTwice}, dataplane.Config{})
	defer p.Close()
	rng := rand.New(rand.NewPCG(1, 41))
	var done sync.WaitGroup
	for q := range 100 {
		in := make([]uint64, 1+rng.IntN(6))
		for k := range in {
			in[k] = rng.Uint64N(1 << 40)
		}
		r := &dataplane.Request{
			Items: len(in), Variant: serving.None, Inputs: []tensor.Tensor{values("x", in)},
			Outputs: []string{"y", "text"},
		}
		time.Sleep(3 * time.Millisecond) // before there was a tenth of a second rates are not known
		done.Add(1)
		p.Submit(r, func(a *dataplane.Response, err error) {
			defer done.Done()
			if err != nil || len(a.Outputs) != 2 || len(numbers(&a.Outputs[0])) != len(in) {
				t.Errorf("%v: %+v, %v", in, a, err)
				return
			}
			var texts []uint64
			_ = tensor.EachBytes(a.Outputs[1].Data, func(x []byte) {
				n, _ := strconv.ParseUint(string(x), 10, 64)
				texts = append(texts, n)
			})
			if !slices.Equal(texts, numbers(&a.Outputs[0])) {
				t.Errorf("%v: the texts are %v beside %v", in, texts, numbers(&a.Outputs[0]))
			}
			want := 0.0
			for k, y := range numbers(&a.Outputs[0]) {
				if y/10 != in[k] || y%10 > 1 {
					t.Errorf("item %d of %v is answered by %d", k, in, y)
				}
				accuracy := 0.95
				if in[k]%2 == 1 && y%10 == 1 {
					accuracy = 0.85
				} else if in[k]%2 == 1 {
					accuracy = 0.25
				}
				if in[k]%2 == 1 && q >= 50 {
					odd, again = odd+1, again+int(y%10)
				}
				want += accuracy / float64(len(in))
			}
			if a.Calibrated && math.Abs(a.Accuracy-want) > 1e-9 {
				t.Errorf("%v: answered with accuracy %v, want %v", in, a.Accuracy, want)
			}
		})
	}
	done.Wait()
	if odd < 50 || again < odd/2 {
		t.Errorf("of %d items that the small variant is not sure of %d have the large one's answer", odd, again)
	}
}
