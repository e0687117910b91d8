package digits

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-serving/sluice/demo/digits/nn"
)

const task = "digits"

// Seeds of different uses are kept apart by these, so that training never sees a held-out picture.
const (
	seedHeldOut = 0x9e3779b97f4a7c15
	seedInit    = 0xbf58476d1ce4e5b9
	seedTrain   = 0x94d049bb133111eb
)

// Build trains the ladder and writes it as a model repository: <dir>/<variant>/1/model.onnx and <dir>/ladder.json. A
// ladder that is there already and was built from the same settings is returned as it is; an older one is replaced, all
// at once at the end; a folder that holds anything else is an error. The work takes
// about two minutes on two cores with AVX-512, half as long again with AVX2, and half an hour without either; training has
// use for four cores. Progress may be nil; it is called from one goroutine with a stage's name and how much of the stage is
// done.
//
// The same seed gives the same ladder on processors of the same kind; across kinds rounding may differ.
func Build(ctx context.Context, dir string, seed uint64, progress func(stage string, done, total float64)) (*Ladder, error) {
	return build(ctx, dir, full(seed), progress)
}

func build(ctx context.Context, dir string, s settings, progress func(stage string, done, total float64)) (*Ladder, error) {
	if l, err := Load(dir); err == nil && l.Settings == s.hash() {
		return l, nil
	}
	if err := replaceable(dir); err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(string, float64, float64) {}
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("build ladder: %w", err)
	}
	tmp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+"-*")
	if err != nil {
		return nil, fmt.Errorf("build ladder: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := os.Chmod(tmp, 0o755); err != nil {
		return nil, fmt.Errorf("build ladder: %w", err)
	}
	l := &Ladder{Task: task, Seed: s.Seed, Settings: s.hash(), HeldOut: HeldOut{Seed: s.Seed ^ seedHeldOut, N: s.HeldOut},
		Seconds: map[string]float64{}}
	nets, err := trainAll(ctx, s, l, progress)
	if err != nil {
		return nil, err
	}
	if err := measureAll(ctx, tmp, s, nets, l, progress); err != nil {
		return nil, err
	}
	if err := l.write(tmp); err != nil {
		return nil, err
	}
	if err := replace(dir, tmp); err != nil {
		return nil, err
	}
	return l, nil
}

// trainAll trains every network of the settings.
func trainAll(ctx context.Context, s settings, l *Ladder, progress func(string, float64, float64)) (map[string]*nn.Net, error) {
	nets := map[string]*nn.Net{}
	for i, w := range s.Networks {
		began := time.Now()
		stage := "train " + w.Name
		steps := float64(w.steps())
		progress(stage, 0, steps)
		net, err := newNetwork(w.Layers, rand.New(rand.NewPCG(s.Seed^seedInit, uint64(i))))
		if err != nil {
			return nil, fmt.Errorf("build ladder: %w", err)
		}
		err = nn.Train(ctx, net, nn.Training{
			Stages: w.Stages, Batch: w.Batch, Rate: w.Rate, Decay: 0.05, Seed: s.Seed ^ seedTrain + uint64(i),
			Fill:     practise,
			Progress: func(step int, _ float64) { progress(stage, float64(step), steps) },
		})
		if err != nil {
			return nil, fmt.Errorf("build ladder: train %s: %w", w.Name, err)
		}
		nets[w.Name] = net
		l.Seconds[stage] = time.Since(began).Seconds()
	}
	return nets, nil
}

// practise draws a picture to train on. It holds more letters than those served, because most of it lies near the digit.
func practise(rng *rand.Rand, size int, x []float32) int {
	label := rng.IntN(10)
	c := canvas{size, x}
	c.render(rng, label, 2*letters)
	return label
}

// measureAll writes every variant's model and measures its accuracy. What a network says of a view is worked out once,
// for all variants that use it.
func measureAll(ctx context.Context, dir string, s settings, nets map[string]*nn.Net, l *Ladder, progress func(string, float64, float64)) error {
	if len(s.Variants) == 0 {
		return errors.New("build ladder: the settings have no variants")
	}
	type glance struct {
		network string
		view    view
	}
	said := map[glance][]float32{}
	for _, v := range s.Variants {
		for _, name := range v.Networks {
			if nets[name] == nil {
				return fmt.Errorf("build ladder: variant %s: there is no network %q", v.Name, name)
			}
			for _, at := range lattice[:v.Views] {
				said[glance{name, at}] = nil
			}
		}
	}
	const stage = "measure accuracy"
	done, total := 0, float64(len(said))
	progress(stage, 0, total)
	pictures, labels := Set(l.HeldOut.Seed, l.HeldOut.N)
	for _, v := range s.Variants {
		began := time.Now()
		var members []*nn.Net
		logits := make([]float32, len(labels)*10)
		for _, name := range v.Networks {
			members = append(members, nets[name])
			for _, at := range lattice[:v.Views] {
				key := glance{name, at}
				if said[key] == nil {
					said[key] = see(nets[name], at, pictures, func() bool { return ctx.Err() != nil })
					done++
				}
				if err := ctx.Err(); err != nil {
					return fmt.Errorf("build ladder: measure %s: %w", v.Name, err)
				}
				add(logits, said[key])
				progress(stage, float64(done), total)
			}
		}
		c := newClassifier(members, v.Views)
		path := Model(dir, v.Name)
		if err := c.graph(v.Name).Write(path); err != nil {
			return fmt.Errorf("build ladder: %w", err)
		}
		st, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("build ladder: %w", err)
		}
		l.Variants = append(l.Variants, LadderVariant{Name: v.Name, Accuracy: right(logits, labels), Parameters: c.parameters(), Products: c.products(), Bytes: st.Size()})
		l.Seconds["measure "+v.Name] = time.Since(began).Seconds()
	}
	return nil
}

// right returns the share of rows whose largest logit is that of their label.
func right(logits []float32, labels []int64) float64 {
	sum := 0
	for i, got := range best(logits) {
		if got == labels[i] {
			sum++
		}
	}
	return float64(sum) / float64(len(labels))
}
