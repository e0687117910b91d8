package digits

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-serving/sluice/models/digits/nn"
	"github.com/sluice-serving/sluice/models/onnxmodel"
)

const task = "digits"

// These separate the seeds of different uses, so that training never sees a held-out picture.
const (
	seedHeldOut = 0x9e3779b97f4a7c15
	seedInit    = 0xbf58476d1ce4e5b9
	seedTrain   = 0x94d049bb133111eb
	seedScenes  = 0x2545f4914f6cdd1d
	seedTuning  = 0x632be59bd9b4e019
)

// Build trains the ladder and writes it as a model repository: <dir>/<variant>/1/model.onnx and <dir>/ladder.json. A
// ladder in dir that was built from the same settings is returned as it is. An older one is replaced at the end, in one
// step. A folder that holds anything else is an error. The work takes about two minutes on two cores with AVX-512,
// three with AVX2, and half an hour without either; training uses up to four cores. progress may be nil; it is called
// from one goroutine.
//
// The same seed gives the same ladder on processors of the same kind; across kinds rounding may differ.
func Build(ctx context.Context, dir string, seed uint64, progress Progress) (*Ladder, error) {
	return build(ctx, dir, full(seed), progress)
}

func build(ctx context.Context, dir string, s settings, progress Progress) (*Ladder, error) {
	l := &Ladder{Task: task, Seed: s.Seed, Settings: hash(s), HeldOut: HeldOut{
		Seed: s.Seed ^ seedHeldOut, N: s.HeldOut,
	},
		Seconds: map[string]float64{}}
	return l.reuseOrBuild(dir, progress, func(tmp string, progress Progress) error {
		nets, err := trainAll(ctx, s, l, progress)
		if err != nil {
			return err
		}
		return measureAll(ctx, tmp, s, nets, l, progress)
	})
}

// Progress is called with the name of a stage of the work and how much of it is done, as done of total.
type Progress func(stage string, done, total float64)

// reuseOrBuild returns the ladder in dir if it was built from the settings of l. Otherwise fill trains the models of l
// and writes them into a temporary folder, which then replaces dir.
func (l *Ladder) reuseOrBuild(dir string, progress Progress, fill func(tmp string, progress Progress) error) (*Ladder,
	error) {
	if old, err := load(dir, l.Task); err == nil && old.Settings == l.Settings {
		return old, nil
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
	if err := fill(tmp, progress); err != nil {
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
func trainAll(ctx context.Context, s settings, l *Ladder, progress Progress) (map[string]*nn.Net, error) {
	nets := map[string]*nn.Net{}
	for i, w := range s.Networks {
		net, err := l.train(ctx, w, i, 10, drawTrainingPicture, progress)
		if err != nil {
			return nil, err
		}
		nets[w.Name] = net
	}
	return nets, nil
}

// train trains the i-th network of a ladder for a number of classes, on the pictures that fill draws.
func (l *Ladder) train(ctx context.Context, w network, i, classes int, fill func(*rand.Rand, int, []float32) int,
	progress Progress) (*nn.Net, error) {
	began := time.Now()
	stage := "train " + w.Name
	steps := float64(w.steps())
	progress(stage, 0, steps)
	net, err := newNetwork(w.Layers, classes, rand.New(rand.NewPCG(l.Seed^seedInit, uint64(i))))
	if err != nil {
		return nil, fmt.Errorf("build ladder: %w", err)
	}
	err = nn.Train(ctx, net, nn.Training{
		Stages: w.Stages, Batch: w.Batch, Rate: w.Rate, Decay: 0.05, Seed: l.Seed ^ seedTrain + uint64(i),
		Fill:     fill,
		Progress: func(step int, _ float64) { progress(stage, float64(step), steps) },
	})
	if err != nil {
		return nil, fmt.Errorf("build ladder: train %s: %w", w.Name, err)
	}
	l.Seconds[stage] = time.Since(began).Seconds()
	return net, nil
}

// drawTrainingPicture draws a picture to train on. It has more letters per area than served pictures, because most of
// it is near the digit.
func drawTrainingPicture(rng *rand.Rand, size int, x []float32) int {
	label := rng.IntN(10)
	c := canvas{size, x}
	c.render(rng, []int64{int64(label)}, 2*letters)
	return label
}

// measureAll writes every variant's model and measures its accuracy. The logits of a network for a view are computed
// once for all variants that use them.
func measureAll(ctx context.Context, dir string, s settings, nets map[string]*nn.Net, l *Ladder,
	progress Progress) error {
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
					said[key] = viewLogits(nets[name], at, pictures, func() bool { return ctx.Err() != nil })
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
		if err := l.add(dir, LadderVariant{
			Name: v.Name, Accuracy: accuracyOf(logits, labels), Parameters: c.parameters(),
			Multiplications: c.multiplications(),
		}, c.graph(v.Name)); err != nil {
			return err
		}
		l.Seconds["measure "+v.Name] = time.Since(began).Seconds()
	}
	return nil
}

// add writes a variant's model and adds the variant to the ladder.
func (l *Ladder) add(dir string, v LadderVariant, g *onnxmodel.Graph) error {
	path := Model(dir, v.Name)
	if err := g.Write(path); err != nil {
		return fmt.Errorf("build ladder: %w", err)
	}
	st, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("build ladder: %w", err)
	}
	v.Bytes = st.Size()
	l.Variants = append(l.Variants, v)
	return nil
}

// accuracyOf returns the share of rows whose largest logit is that of the label.
func accuracyOf(logits []float32, labels []int64) float64 {
	sum := 0
	for i, got := range best(logits) {
		if got == labels[i] {
			sum++
		}
	}
	return float64(sum) / float64(len(labels))
}
