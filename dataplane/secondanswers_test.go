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
	"testing/synctest"
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

func indexOf(list []tensor.Tensor, name string) int {
	return slices.IndexFunc(list, func(x tensor.Tensor) bool { return x.Name == name })
}

// Queries want an accuracy that the large variant alone has, and the small one where it is sure. What it is not sure of
// the large one answers; of the others some have no other answer than the small one's.
func TestAnswersThatFallShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(ctx context.Context, b *dataplane.Batch) error {
			time.Sleep([]time.Duration{5, 1}[b.Variant] * time.Millisecond)
			return answerTwice(ctx, b)
		}
		p := planeOf(t, unsure(t), &runtime{run: run}, dataplane.Config{})
		defer p.Close()
		var done sync.WaitGroup
		sure := 0
		for q := range 1000 {
			in := uint64(q)
			time.Sleep(time.Millisecond)
			done.Add(1)
			p.Submit(&dataplane.Request{
				Items: 1, Variant: serving.None, MinAccuracy: 0.9, Inputs: []tensor.Tensor{values("x", []uint64{in})},
			}, func(a *dataplane.Response, err error) {
				defer done.Done()
				if err != nil {
					t.Errorf("%d: %v", in, err)
					return
				}
				switch y := numbers(&a.Outputs[0])[0]; {
				case y/10 != in || y%10 == 0 && in%2 == 1:
					t.Errorf("%d is answered by %d", in, y)
				case y%10 == 0:
					sure++
					if !a.Calibrated || a.Accuracy < 0.9 {
						t.Errorf("%d has accuracy %v (%v)", in, a.Accuracy, a.Calibrated)
					}
				case in%2 == 1 && a.Calibrated && math.Abs(a.Accuracy-0.85) > 1e-9:
					t.Errorf("%d has accuracy %v, and such answers 0.85", in, a.Accuracy)
				}
			})
		}
		done.Wait()
		if sure < 100 {
			t.Errorf("%d queries have the small variant's answer, of 500 that it is sure of", sure)
		}
	})
}

// A stage of a graph whose answers may be improved sends its rows to a slow one. The first answer has one row and the
// second two, and the large variant sometimes takes as long as the query has: then the first answer has gone on when
// the second comes, and the stage behind has not begun. What the client gets is all of one of them.
func TestAnAnswerThatHasGoneOnStays(t *testing.T) {
	c := unsure(t)
	c.Spec.Workers = append(c.Spec.Workers, serving.Worker{Name: "behind"})
	c.Spec.Apps[0].SLO.Latency, c.Spec.Apps[0].Stages = 200*time.Millisecond, []serving.StageID{0, 1}
	c.Spec.Apps[0].Late = serving.ServeLate
	c.Spec.Stages[0].Next = []serving.Edge{{To: 1, FanOut: 1, Rows: "y"}}
	c.Spec.Stages = append(c.Spec.Stages, serving.Stage{Name: "behind", Joins: 1, Variants: []serving.VariantID{2}})
	c.Spec.Variants = append(c.Spec.Variants, serving.Variant{Name: "behind", Stage: 1, Accuracy: 1, MaxBatch: 1})
	c.Measurements.Latency = append(c.Measurements.Latency, simtest.Point(2, 0, 1, 1, 10*time.Millisecond, 0))
	var err error
	if c.Profile, err = profile.NewTable(c.Spec, c.Measurements, profile.P95); err != nil {
		t.Fatal(err)
	}
	own := c.Plan.Instances[0]
	own.Worker, own.Stage, own.Variants = 1, 1, []plan.Variant{{Variant: 2, Limit: 1}}
	c.Plan.Instances = append(c.Plan.Instances, own)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(3, 41))
		draw := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return rng.IntN(n)
		}
		p := planeOf(t, c, &runtime{run: func(ctx context.Context, b *dataplane.Batch) error {
			switch b.Variant {
			case 0:
				time.Sleep(time.Duration(4+190*(draw(30)/29)) * time.Millisecond)
			case 1:
				time.Sleep(time.Millisecond)
			case 2:
				time.Sleep(time.Duration(5+300*(draw(20)/19)) * time.Millisecond)
				in := b.Portions[0].Inputs
				b.Portions[0].Outputs = in[indexOf(in, "y"):][:1]
				return nil
			}
			if err := answerTwice(ctx, b); err != nil {
				return err
			}
			for k := range b.Portions {
				x := &b.Portions[k].Outputs
				y := numbers(&(*x)[0])[0]
				*x = append(slices.Clone((*x)[2:]), values("y", []uint64{y, y}[:1+y%10]))
			}
			return nil
		}}, dataplane.Config{})
		defer p.Close()
		rows := map[int]int{}
		var done sync.WaitGroup
		for q := range 3000 {
			in := uint64(2*q + 1)
			time.Sleep(time.Duration(draw(50)) * time.Millisecond)
			done.Add(1)
			r := &dataplane.Request{Items: 1, Variant: serving.None, Inputs: []tensor.Tensor{values("x", []uint64{in})}}
			p.Submit(r, func(a *dataplane.Response, err error) {
				defer done.Done()
				if err != nil {
					t.Errorf("%d: %v", in, err)
					return
				}
				got := numbers(&a.Outputs[indexOf(a.Outputs, "y")])
				rows[len(got)]++
				if len(got) != int(1+got[0]%10) || got[0]/10 != in || got[len(got)-1] != got[0] {
					t.Errorf("%d: answered by %v", in, got)
				}
			})
		}
		done.Wait()
		t.Logf("%d answers are first ones, %d second ones", rows[1], rows[2])
		if rows[1] < 50 || rows[2] < 1000 {
			t.Errorf("%d answers are first ones, %d second ones: want many of each", rows[1], rows[2])
		}
	})
}
