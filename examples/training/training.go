package training

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"github.com/sluice-serving/sluice/examples/training/nn"
	"github.com/sluice-serving/sluice/internal/models/digits"
)

// These separate the seeds of different uses, so that training never sees a held-out picture.
const (
	seedHeldOut = 0x9e3779b97f4a7c15
	seedInit    = 0xbf58476d1ce4e5b9
	seedTrain   = 0x94d049bb133111eb
	seedPatches = 0x2545f4914f6cdd1d
	seedTuning  = 0x632be59bd9b4e019
)

// Progress is called from one goroutine, with the share of the work that is done, in [0, 1], and the present step.
type Progress func(share float64, doing string)

// Run trains the classifiers and the models for scenes and writes them into dir/pictures and dir/scenes, as
// [digits.Load] reads them. It takes about five minutes on two cores with AVX-512, and half an hour without AVX2;
// training uses up to four cores. progress may be nil.
func Run(ctx context.Context, dir string, seed uint64, progress Progress) error {
	return run(ctx, dir, classifiers(seed), sceneModels(seed), progress)
}

func run(ctx context.Context, dir string, pictures, scenes settings, progress Progress) error {
	w := &work{progress: progress}
	for _, s := range []settings{pictures, scenes} {
		for i := range s.Networks {
			products, err := s.Networks[i].products(s.HeldOut.N)
			if err != nil {
				return err
			}
			w.total += products
		}
	}
	for _, x := range []struct {
		folder string
		settings
		measure func(context.Context, *digits.Ladder, map[string]*nn.Net, *work) error
	}{
		{digits.Pictures, pictures, measureClassifiers}, {digits.SceneModels, scenes, measureSceneModels},
	} {
		l := x.ladder()
		nets, err := x.train(ctx, l, w)
		if err == nil {
			err = x.measure(ctx, l, nets, w)
		}
		if err == nil {
			err = l.Save(filepath.Join(dir, x.folder))
		}
		if err != nil {
			return fmt.Errorf("train %s: %w", x.folder, err)
		}
	}
	return nil
}

// work counts the multiplications that are done.
type work struct {
	done, total float64
	progress    Progress
}

func (w *work) add(products float64, doing string) {
	w.done += products
	if w.progress != nil {
		w.progress(min(w.done/w.total, 1), doing)
	}
}

// train trains the networks, and gives those of the ladder and the returned ones the weights that files keep.
func (s *settings) train(ctx context.Context, l *digits.Ladder, w *work) (map[string]*nn.Net, error) {
	nets := make(map[string]*nn.Net)
	for i := range s.Networks {
		x := &s.Networks[i]
		net, err := newNet(x.Layers, x.Classes, rand.New(rand.NewPCG(s.Seed^seedInit, uint64(i))))
		if err != nil {
			return nil, err
		}
		each, before := x.trainingProducts(net)/float64(x.steps()), 0
		err = nn.Train(ctx, net, nn.Training{
			Stages: x.Stages, Batch: x.Batch, Rate: x.Rate, Decay: 0.05, Seed: s.Seed ^ seedTrain + uint64(i),
			Fill: x.Fill,
			Progress: func(step int, _ float64) {
				w.add(each*float64(step-before), "training "+x.Name)
				before = step
			},
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", x.Name, err)
		}
		if err := round(net, &l.Networks[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", x.Name, err)
		}
		nets[x.Name] = net
	}
	return nets, nil
}

// round gives a network of a ladder the weights of a trained one, and the trained one those that a file keeps of them.
func round(net *nn.Net, to *digits.Network) error {
	folded := net.Folded()
	all := make([]digits.Linear, len(folded))
	for k, x := range folded {
		all[k] = digits.Linear(x)
	}
	if err := to.SetLinear(all); err != nil {
		return err
	}
	for k, x := range to.Linear() {
		copy(folded[k].Weights, x.Weights)
	}
	return nil
}

// newNet makes a network for whole pictures.
func newNet(words string, classes int, rng *rand.Rand) (*nn.Net, error) {
	layers, err := digits.ParseLayers(words)
	if err != nil {
		return nil, err
	}
	var specs []nn.Spec
	for _, l := range layers {
		switch l.Kind {
		case digits.Conv:
			specs = append(specs, nn.Conv(l.Size, l.Channels))
		case digits.Max:
			specs = append(specs, nn.MaxPool())
		case digits.Avg:
			specs = append(specs, nn.AvgPool(l.Size))
		}
	}
	whole := nn.Shape{C: 1, H: digits.Size, W: digits.Size}
	return nn.New(whole, rng, append(specs, nn.Locate(classes))...), nil
}

// drawDigit draws a picture with a digit. It has more letters per area than served pictures, because most of it is near
// the digit.
func drawDigit(rng *rand.Rand, size int, x []float32) int {
	label := rng.IntN(10)
	digits.Draw(rng, size, x, []int64{int64(label)}, 2*digits.Letters)
	return label
}

// drawPatch draws a picture that holds a digit or does not.
func drawPatch(rng *rand.Rand, size int, x []float32) int {
	with := rng.IntN(2)
	var labels []int64
	if with == 1 {
		labels = []int64{int64(rng.IntN(10))}
	}
	digits.Draw(rng, size, x, labels, 2*digits.Letters)
	return with
}
