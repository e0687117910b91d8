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

// Seeds of different uses are kept apart by these, so that training never sees a held-out image.
const (
	seedHeldOut = 0x9e3779b97f4a7c15
	seedInit    = 0xbf58476d1ce4e5b9
	seedTrain   = 0x94d049bb133111eb
)

// Build trains the ladder and writes it as a model repository: <dir>/<variant>/1/model.onnx and <dir>/ladder.json. A
// ladder that is there already and was built from the same settings is returned as it is; an older one is replaced, all
// at once at the end; a folder that holds anything else is an error. It uses all cores; the work takes a minute or two on
// two with AVX2, and about ten times as long without. Progress may be nil; it is called from one goroutine with a stage's name and how much of the stage is done.
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
		progress(stage, 0, float64(w.Steps))
		net, err := newNetwork(w.Layers, rand.New(rand.NewPCG(s.Seed^seedInit, uint64(i))))
		if err != nil {
			return nil, fmt.Errorf("build ladder: %w", err)
		}
		err = nn.Train(ctx, net, nn.Training{
			Steps: w.Steps, Batch: w.Batch, Rate: w.Rate, Decay: 1e-2, Seed: s.Seed ^ seedTrain + uint64(i),
			Fill: func(rng *rand.Rand, x []float32) int {
				label := rng.IntN(10)
				render(rng, label, x)
				return label
			},
			Progress: func(step int, _ float64) { progress(stage, float64(step), float64(w.Steps)) },
		})
		if err != nil {
			return nil, fmt.Errorf("build ladder: train %s: %w", w.Name, err)
		}
		nets[w.Name] = net
		l.Seconds[stage] = time.Since(began).Seconds()
	}
	return nets, nil
}

// measureAll writes every variant's model and measures its accuracy.
func measureAll(ctx context.Context, dir string, s settings, nets map[string]*nn.Net, l *Ladder, progress func(string, float64, float64)) error {
	images, labels := Set(l.HeldOut.Seed, l.HeldOut.N)
	total := 0
	for _, v := range s.Variants {
		total += v.Views * len(v.Networks)
	}
	done := 0
	for _, v := range s.Variants {
		began := time.Now()
		progress("measure accuracy", float64(done), float64(total))
		var members []*nn.Net
		for _, name := range v.Networks {
			if nets[name] == nil {
				return fmt.Errorf("build ladder: variant %s: there is no network %q", v.Name, name)
			}
			members = append(members, nets[name])
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
		accuracy := c.accuracy(images, labels, func() bool { return ctx.Err() != nil })
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("build ladder: measure %s: %w", v.Name, err)
		}
		l.Variants = append(l.Variants, LadderVariant{Name: v.Name, Accuracy: accuracy, Parameters: c.parameters(), Bytes: st.Size()})
		l.Seconds["measure "+v.Name] = time.Since(began).Seconds()
		done += v.Views * len(v.Networks)
	}
	progress("measure accuracy", float64(total), float64(total))
	if len(l.Variants) == 0 {
		return errors.New("build ladder: the settings have no variants")
	}
	return nil
}
