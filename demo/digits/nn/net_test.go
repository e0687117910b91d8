package nn

import (
	"context"
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
	"linear":  {Shape{1, 5, 3}, []Spec{Logits(10)}},
	"mlp":     {Shape{1, 8, 8}, []Spec{AvgPool(2), Dense(17), Dense(16), Logits(3)}},
	"conv":    {Shape{2, 6, 6}, []Spec{Conv(3, 5), MaxPool(), Logits(4)}},
	"deep":    {Shape{1, 6, 6}, []Spec{Pad(1), Conv(5, 16), MaxPool(), Conv(3, 16), AvgPool(2), Dense(9), Logits(3)}},
	"padding": {Shape{1, 4, 4}, []Spec{Conv(3, 4), Pad(2), AvgPool(4), Logits(2)}},
}

func TestGradientsAgreeWithFiniteDifferences(t *testing.T) {
	for name, c := range nets {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			net := New(c.in, rng, c.specs...)
			for _, l := range net.layers {
				for i := range l.weights() {
					if l.weights()[i] == 0 && i >= l.parameters()-l.out().C && len(l.weights()) == l.parameters() {
						l.weights()[i] = float32(rng.NormFloat64()) * 0.1 // biases, else they are all 0
					}
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
					i := rng.IntN(len(p))
					if d, ok := l.(*dense); ok && i%d.ld >= d.units {
						if grads[li][i] != 0 {
							t.Fatalf("layer %d: padding has gradient %v", li, grads[li][i])
						}
						continue
					}
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

// quadrants is a task that a small network learns quickly: which quarter of the image is bright.
func quadrants(rng *rand.Rand, x []float32) int {
	label := rng.IntN(4)
	for i := range x {
		x[i] = float32(rng.Float64() * 0.5)
		if (i/8)/4*2+(i%8)/4 == label {
			x[i] += 0.4
		}
	}
	return label
}

func train(t *testing.T) (*Net, []float64) {
	net := New(Shape{1, 8, 8}, rand.New(rand.NewPCG(7, 8)), Conv(3, 16), MaxPool(), Dense(16), Logits(4))
	var losses []float64
	err := Train(context.Background(), net, Training{Steps: 60, Batch: 50, Rate: 3e-3, Decay: 1e-2, Seed: 9, Fill: quadrants,
		Progress: func(_ int, loss float64) { losses = append(losses, loss) }})
	if err != nil {
		t.Fatal(err)
	}
	return net, losses
}

func TestTrainLearns(t *testing.T) {
	net, losses := train(t)
	if len(losses) != 3 || losses[2] > losses[0]/4 {
		t.Errorf("loss went %v", losses)
	}
	rng := rand.New(rand.NewPCG(10, 11))
	r, right := net.Runner(), 0
	for range 200 {
		x := make([]float32, 64)
		label := quadrants(rng, x)
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
	net := New(Shape{1, 8, 8}, rand.New(rand.NewPCG(1, 1)), Logits(4))
	if err := Train(ctx, net, Training{Steps: 1, Batch: 1, Rate: 1e-3, Fill: quadrants}); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	if err := Train(context.Background(), net, Training{}); err == nil {
		t.Error("took empty settings")
	}
}

func BenchmarkStep(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	net := New(Shape{1, 28, 28}, rng, Pad(2), Conv(3, 32), MaxPool(), Conv(3, 64), MaxPool(), Conv(3, 64), MaxPool(), Dense(128), Logits(10))
	r := net.Runner()
	x, labels := fill(rng, make([]float32, shard*784)), make([]int, shard)
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
