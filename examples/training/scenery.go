package training

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/sluice-serving/sluice/examples/training/nn"
	"github.com/sluice-serving/sluice/internal/models/digits"
)

// measureSceneModels finds the thresholds of the detectors and measures what the ladder says of all. The accuracy of a
// detector is the harmonic mean of its precision and recall on held-out scenes, that of a reader is the share of
// patches of these scenes that it reads correctly when they are cut out a few pixels off.
func measureSceneModels(ctx context.Context, l *digits.Ladder, nets map[string]*nn.Net, w *work) error {
	tuning, held := heldOutScenes(l.Seed^seedTuning, l.HeldOut.N), heldOutScenes(l.HeldOut.Seed, l.HeldOut.N)
	for i := range l.Variants {
		v := &l.Variants[i]
		net := nets[v.Networks[0]]
		w.add(float64(l.HeldOut.N)*float64(net.Multiplications()), "measuring the accuracy of "+v.Name)
		score := reader{net.At(digits.Box, digits.Box)}.score
		if v.Stage == digits.Detect {
			d := detector{net: net.At(digits.Size, digits.Size)}
			d.bias = d.tuneThreshold(ctx, tuning)
			v.Bias, score = d.bias, d.score
		}
		v.Accuracy, v.Brief = score(ctx, held), score(ctx, held[:l.HeldOut.Brief])
		if ctx.Err() != nil {
			return fmt.Errorf("measure %s: %w", v.Name, ctx.Err())
		}
	}
	return nil
}

// heldOutScenes are scenes of 1 to 9 digits.
func heldOutScenes(seed uint64, n int) []digits.Scene {
	return digits.Scenes(seed, n, func(i int) int { return 1 + i%9 })
}

// detector says for every place of a picture whether a digit's centre is there. Its network is trained like the
// classifiers, on small pictures, with two classes: without and with a digit. On a large picture it scores every place.
type detector struct {
	net  *nn.Net
	bias float64 // the least logarithm of the odds at which a place counts as a digit's
}

// detection is a place that a detector takes for a digit.
type detection struct {
	x, y float32
	odds float64 // logarithm
}

// find lists the detections in a scene.
func (d *detector) find(r *nn.Runner, picture []uint8, least float64) []detection {
	x := make([]float32, len(picture))
	greys(picture, x)
	scores := r.Places(x)
	n := len(scores) / 2
	odds := make([]float64, n)
	for i := range odds {
		odds[i] = float64(scores[n+i] - scores[i])
	}
	return pick(odds, least)
}

// pick lists the places with at least the given odds, best first. No two of them overlap by more than digits.Overlap.
func pick(odds []float64, least float64) (out []detection) {
	side := int(math.Round(math.Sqrt(float64(len(odds)))))
	squares := digits.Boxes(side, side)
	var all []detection
	for i, o := range odds {
		if o >= least {
			all = append(all, detection{squares[4*i] + digits.Box/2, squares[4*i+1] + digits.Box/2, o})
		}
	}
	slices.SortStableFunc(all, func(a, b detection) int { return cmp.Compare(b.odds, a.odds) })
	for _, f := range all {
		if !slices.ContainsFunc(out, func(o detection) bool { return overlap(f, o) > digits.Overlap }) {
			out = append(out, f)
		}
	}
	return out
}

// overlap is the intersection over union of the boxes around two points.
func overlap(a, b detection) float64 {
	w, h := digits.Box-math.Abs(float64(a.x-b.x)), digits.Box-math.Abs(float64(a.y-b.y))
	if w <= 0 || h <= 0 {
		return 0
	}
	return w * h / (2*digits.Box*digits.Box - w*h)
}

// scoredDetection is a detection, and whether it is a digit.
type scoredDetection struct {
	odds  float64
	right bool
}

// findAll returns the detections in scenes with odds of at least least, and the number of digits there are. It uses all
// cores, and ends early when ctx does.
func (d *detector) findAll(ctx context.Context, scenes []digits.Scene, least float64) ([]scoredDetection, int) {
	by := make([][]scoredDetection, len(scenes))
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			r := d.net.Runner()
			for i := w; i < len(scenes) && ctx.Err() == nil; i += workers {
				by[i] = scored(&scenes[i], d.find(r, scenes[i].Picture, least))
			}
		})
	}
	wg.Wait()
	there := 0
	for i := range scenes {
		there += len(scenes[i].Digits)
	}
	return slices.Concat(by...), there
}

// scored holds detections against the scene.
func scored(scene *digits.Scene, all []detection) (out []scoredDetection) {
	centres := make([][2]float32, len(all))
	for k, f := range all {
		centres[k] = [2]float32{f.x, f.y}
	}
	for k, of := range scene.Match(centres) {
		out = append(out, scoredDetection{all[k].odds, of >= 0})
	}
	return out
}

// tuneThreshold finds the threshold on the odds with the highest harmonic mean of precision and recall, which is twice
// the correct detections over the sum of detections and digits.
func (d *detector) tuneThreshold(ctx context.Context, scenes []digits.Scene) (at float64) {
	all, there := d.findAll(ctx, scenes, -4)
	slices.SortFunc(all, func(a, b scoredDetection) int { return cmp.Compare(b.odds, a.odds) })
	best, right := 0.0, 0
	for i, f := range all {
		if f.right {
			right++
		}
		if mean := 2 * float64(right) / float64(i+1+there); mean > best {
			best, at = mean, f.odds
		}
	}
	return at
}

// score is the harmonic mean of precision and recall.
func (d *detector) score(ctx context.Context, scenes []digits.Scene) float64 {
	return harmonic(d.findAll(ctx, scenes, d.bias))
}

// harmonic is the harmonic mean of precision and recall of detections among so many digits.
func harmonic(all []scoredDetection, there int) float64 {
	right := 0
	for _, f := range all {
		if f.right {
			right++
		}
	}
	return 2 * float64(right) / float64(max(len(all)+there, 1))
}

// reader reads the digit in a patch.
type reader struct{ net *nn.Net }

// score is the share of the scenes' digits that are read correctly.
func (r reader) score(_ context.Context, scenes []digits.Scene) float64 {
	run, right := r.net.Runner(), 0
	patches, labels := cutOut(scenes)
	x := make([]float32, digits.Box*digits.Box)
	for i, label := range labels {
		greys(patches[i], x)
		if best(run.Forward(x)) == label {
			right++
		}
	}
	return float64(right) / float64(max(len(labels), 1))
}

// cutOut cuts the digits out of scenes, up to 4 pixels off in both directions: half of the distance between two places
// of a detector.
func cutOut(scenes []digits.Scene) (patches [][]uint8, labels []int64) {
	rng := rand.New(rand.NewPCG(1, seedPatches))
	for i := range scenes {
		for _, d := range scenes[i].Digits {
			x, y := int(d.X)-digits.Box/2+rng.IntN(9)-4, int(d.Y)-digits.Box/2+rng.IntN(9)-4
			patches, labels = append(patches, patch(scenes[i].Picture, x, y)), append(labels, d.Label)
		}
	}
	return patches, labels
}

// patch cuts Box by Box pixels out of a picture, its border repeated outwards.
func patch(picture []uint8, x, y int) []uint8 {
	out := make([]uint8, 0, digits.Box*digits.Box)
	for i := range digits.Box {
		row := picture[min(max(y+i, 0), digits.Size-1)*digits.Size:][:digits.Size]
		for j := range digits.Box {
			out = append(out, row[min(max(x+j, 0), digits.Size-1)])
		}
	}
	return out
}
