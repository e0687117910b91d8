package training

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/sluice-serving/sluice/examples/training/nn"
	"github.com/sluice-serving/sluice/internal/models/digits"
)

// measureClassifiers measures the accuracy of every variant. The logits of a network for a view are computed once for
// all variants that use them.
func measureClassifiers(ctx context.Context, l *digits.Ladder, nets map[string]*nn.Net, w *work) error {
	type glance struct {
		network string
		view    digits.View
	}
	said := map[glance][]float32{}
	pictures, labels := digits.Set(l.HeldOut.Seed, l.HeldOut.N)
	for i := range l.Variants {
		v := &l.Variants[i]
		logits := make([]float32, len(labels)*10)
		for _, name := range v.Networks {
			for _, at := range digits.Lattice[:v.Views] {
				key := glance{name, at}
				if said[key] == nil {
					w.add(float64(l.HeldOut.N)*float64(nets[name].Multiplications())/float64(v.Views),
						"measuring the accuracy of "+v.Name)
					said[key] = viewLogits(nets[name], at, pictures, func() bool { return ctx.Err() != nil })
				}
				if err := ctx.Err(); err != nil {
					return fmt.Errorf("measure %s: %w", v.Name, err)
				}
				add(logits, said[key])
			}
		}
		v.Accuracy = accuracyOf(logits, labels)
		v.Brief = accuracyOf(logits, labels[:l.HeldOut.Brief])
	}
	return nil
}

// accuracyOf returns the share of labels that the largest logit of their row is of.
func accuracyOf(logits []float32, labels []int64) float64 {
	sum := 0
	for i, want := range labels {
		if best(logits[i*10:(i+1)*10]) == want {
			sum++
		}
	}
	return float64(sum) / float64(len(labels))
}

func add(to, x []float32) {
	for i, v := range x {
		to[i] += v
	}
}

// best returns the label with the largest logit.
func best(logits []float32) (label int64) {
	for j, v := range logits {
		if v > logits[label] {
			label = int64(j)
		}
	}
	return label
}

// viewLogits returns the logits of a network for a view of pictures, computed on all cores. It ends early, with
// undefined logits, when stop returns true; stop is called from several goroutines.
func viewLogits(net *nn.Net, v digits.View, pictures []uint8, stop func() bool) []float32 {
	n := len(pictures) / digits.Pixels
	logits := make([]float32, n*10)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			r := net.Runner()
			picture, seen := make([]float32, digits.Pixels), make([]float32, digits.Pixels)
			for i := int(next.Add(1)) - 1; i < n && !stop(); i = int(next.Add(1)) - 1 {
				greys(pictures[i*digits.Pixels:(i+1)*digits.Pixels], picture)
				v.Shift(picture, seen)
				copy(logits[i*10:], r.Forward(seen))
			}
		})
	}
	wg.Wait()
	return logits
}

// greys sets to to the values of a picture's bytes.
func greys(picture []uint8, to []float32) {
	for j, b := range picture {
		to[j] = float32(b) * digits.GreyScale
	}
}
