package nn

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
)

// nets cover every layer, with sizes on and off the fast paths.
var nets = map[string]struct {
	in    Shape
	specs []Spec
}{
	"locate":  {Shape{1, 5, 3}, []Spec{Locate(10)}},
	"conv":    {Shape{2, 6, 6}, []Spec{Conv(3, 5), MaxPool(), Locate(4)}},
	"deep":    {Shape{1, 16, 16}, []Spec{AvgPool(2), Conv(5, 16), MaxPool(), Conv(3, 32), Locate(3)}},
	"average": {Shape{1, 8, 8}, []Spec{Conv(3, 4), AvgPool(4), Locate(2)}},
}

func TestGradientsAgreeWithFiniteDifferences(t *testing.T) {
	for name, c := range nets {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			net := New(c.in, rng, c.specs...)
			for _, l := range net.layers {
				for i := range l.weights()[:len(l.weights())-l.running()] {
					l.weights()[i] += 0.1 * float32(rng.NormFloat64()) // biases begin at 0
				}
				l.refresh()
			}
			const n = 5
			x := fill(rng, make([]float32, n*c.in.Len()))
			labels := make([]int, n)
			for i := range labels {
				labels[i] = rng.IntN(net.Classes())
			}
			r := net.Runner()
			r.gradients(x, labels)
			var grads [][]float32
			for _, g := range r.grads {
				grads = append(grads, append([]float32(nil), g...))
			}
			loss := func(p []float32, i int, v float32, l layer) float64 {
				old := p[i]
				p[i] = v
				l.refresh()
				sum := r.gradients(x, labels)
				p[i] = old
				l.refresh()
				return sum
			}
			bad, tried := 0, 0
			for li, l := range net.layers {
				p := l.weights()
				for range min(60, 2*len(p)) {
					i := rng.IntN(len(p) - l.running())
					// Of two steps one may cross the kink of a rectifier or a maximum.
					got, off := float64(grads[li][i]), math.Inf(1)
					for _, h := range []float32{2e-3, 3e-4} {
						want := (loss(p, i, p[i]+h, l) - loss(p, i, p[i]-h, l)) / (2 * float64(h))
						off = min(off, math.Abs(want-got)/(0.01+0.02*math.Abs(want)))
					}
					tried++
					if off > 1 {
						bad++
						t.Logf("layer %d weight %d: gradient %v is %.1f times the tolerance off", li, i, got, off)
					}
				}
			}
			// Both may, rarely.
			if tried == 0 || bad > tried/25 {
				t.Errorf("%d of %d gradients are wrong", bad, tried)
			}
		})
	}
}

// slopes is a task that a small network learns quickly: which of four short strokes there is somewhere in the image.
func slopes(rng *rand.Rand, size int, x []float32) int {
	for i := range x {
		x[i] = float32(rng.Float64() * 0.5)
	}
	label := rng.IntN(4)
	step := [4]int{1, size, size + 1, size - 1}[label]
	at := (1+rng.IntN(size-4))*size + 2 + rng.IntN(size-4)
	for range 3 {
		x[at] += 0.5
		at += step
	}
	return label
}

func train(t *testing.T) (*Net, []float64) {
	net := New(Shape{1, 8, 8}, rand.New(rand.NewPCG(7, 8)), Conv(3, 16), MaxPool(), Conv(3, 16), Locate(4))
	var losses []float64
	err := Train(context.Background(), net, Training{Stages: []Stage{{8, 80}, {16, 20}}, Batch: 50, Rate: 1e-2,
		Decay: 1e-2, Seed: 9, Fill: slopes,
		Progress: func(_ int, loss float64) { losses = append(losses, loss) }})
	if err != nil {
		t.Fatal(err)
	}
	return net, losses
}

func TestTrainLearns(t *testing.T) {
	net, losses := train(t)
	if len(losses) != 5 || losses[4] > losses[0]/2 {
		t.Errorf("loss went %v", losses)
	}
	rng := rand.New(rand.NewPCG(10, 11))
	r, right := net.At(20, 20).Runner(), 0
	for range 200 {
		x := make([]float32, 20*20)
		label := slopes(rng, 20, x)
		best := 0
		for i, v := range r.Forward(x) {
			if v > r.acts[len(r.acts)-1][best] {
				best = i
			}
		}
		if best == label {
			right++
		}
	}
	if right < 190 {
		t.Errorf("%d of 200 right", right)
	}
}

// TestFoldedWeightsAgree checks that the normalisation folded into the weights gives what training computes from the
// same means and variances.
func TestFoldedWeightsAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 13))
	net := New(Shape{2, 6, 6}, rng, Conv(3, 5), Locate(4))
	c := net.layers[0].(*conv)
	const n = 3
	x := fill(rng, make([]float32, n*net.in.Len()))
	r := net.Runner()
	want := append([]float32(nil), r.forward(x, true)...)
	_, _, mean, variance := c.norm()
	kept := r.kept[0][n*c.o.Len():]
	for o := range mean {
		mean[o], variance[o] = kept[o], 1/(kept[c.o.C+o]*kept[c.o.C+o])-normEps
	}
	c.refresh()
	for i, v := range r.Forward(x) {
		if math.Abs(float64(v-want[i])) > 1e-4 {
			t.Errorf("logit %d: %v, want %v", i, v, want[i])
		}
	}
}

func TestTrainDoesNotDependOnTheNumberOfCores(t *testing.T) {
	a, _ := train(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b, _ := train(t)
	for i := range a.layers {
		p, q := a.layers[i].weights(), b.layers[i].weights()
		for j := range p {
			if p[j] != q[j] {
				t.Fatalf("layer %d weight %d: %v and %v", i, j, p[j], q[j])
			}
		}
	}
}

func TestTrainStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	net := New(Shape{1, 8, 8}, rand.New(rand.NewPCG(1, 1)), Locate(4))
	if err := Train(ctx, net, Training{
		Stages: []Stage{{8, 1}}, Batch: 1, Rate: 1e-3, Fill: slopes,
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := Train(context.Background(), net, Training{}); err == nil {
		t.Error("took empty settings")
	}
}

func BenchmarkStep(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	net := New(Shape{1, 64, 64}, rng, Conv(3, 16), MaxPool(), Conv(3, 32), MaxPool(), Conv(3, 64), Conv(3, 64),
		MaxPool(), Conv(3, 96), Locate(10))
	r := net.Runner()
	x, labels := fill(rng, make([]float32, shard*64*64)), make([]int, shard)
	b.Run("forward", func(b *testing.B) {
		for b.Loop() {
			r.Forward(x)
		}
	})
	b.Run("gradients", func(b *testing.B) {
		for b.Loop() {
			r.gradients(x, labels)
		}
	})
}
