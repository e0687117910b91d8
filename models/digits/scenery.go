package digits

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/models/digits/nn"
	"github.com/sluice-serving/sluice/models/onnxmodel"
)

const sceneTask = "digits in scenes"

// Stages of the pipeline that reads scenes, whose models BuildScenery makes.
const (
	Detect = "detect"
	Read   = "read"
)

// Overlap is the intersection over union above which two boxes of a scene count as the same digit.
const Overlap = 0.2

// sceneSettings is everything that the models for scenes depend on. Format stands for this package's code.
type sceneSettings struct {
	Format    int
	Seed      uint64
	HeldOut   int // scenes, besides as many to set thresholds by
	Detectors []network
	Readers   []network
}

func fullScenery(seed uint64) sceneSettings {
	patches := func(steps int) []nn.Stage { return []nn.Stage{{Size: Box, Steps: steps}} }
	return sceneSettings{
		Format: 1, Seed: seed, HeldOut: 300,
		Detectors: []network{
			{
				"coarse", "avg2 conv3x16 max2 conv3x32 max2 conv3x48", []nn.Stage{
					{Size: Box, Steps: 400}, {Size: 64, Steps: 200},
				}, 32, 16e-3,
			},
			{
				"fine", "conv3x16 max2 conv3x16 max2 conv3x32 conv3x32 max2 conv3x64 conv3x64", []nn.Stage{
					{Size: Box, Steps: 500}, {Size: 64, Steps: 400}, {Size: 96, Steps: 60},
				}, 32, 16e-3,
			},
		},
		Readers: []network{
			{"quick", "conv3x16 max2 conv3x32 max2 conv3x48", patches(600), 32, 16e-3},
			{"careful", "conv3x16 max2 conv3x32 conv3x32 max2 conv3x64 conv3x64", patches(600), 32, 16e-3},
		},
	}
}

// BuildSceneModels trains detectors, which find digits in a scene, and readers, which read one in a patch of Box by Box
// pixels, and writes them as a model repository, as Build does. The accuracy of a detector is the harmonic mean of its
// precision and recall on held-out scenes of 1 to 9 digits, that of a reader is the share of patches of these scenes
// that it reads correctly when they are cut out a few pixels off.
//
// A detector takes "image" UINT8 [N,1,192,192] and gives "boxes" FP32 [N,P,4] (x1, y1, x2, y2 in pixels) and "scores"
// FP32 [N,P]: a box that scores at least 0.5 and overlaps no better one by more than Overlap is a digit. A reader takes
// "patch" UINT8 [N,1,40,40] and gives "logits" FP32 [N,10] and "label" INT64 [N].
func BuildSceneModels(ctx context.Context, dir string, seed uint64, progress Progress) (*Ladder, error) {
	return buildScenery(ctx, dir, fullScenery(seed), progress)
}

func buildScenery(ctx context.Context, dir string, s sceneSettings, progress Progress) (*Ladder, error) {
	l := &Ladder{
		Task: sceneTask, Seed: s.Seed, Settings: hash(s), HeldOut: HeldOut{Seed: s.Seed ^ seedHeldOut, N: s.HeldOut},
		Seconds: map[string]float64{},
	}
	return l.reuseOrBuild(dir, progress, func(tmp string, progress Progress) error {
		busy := func(i int) int { return 1 + i%9 }
		tuning, held := Scenes(s.Seed^seedTuning, s.HeldOut, busy), Scenes(l.HeldOut.Seed, s.HeldOut, busy)
		for i, w := range s.Detectors {
			net, err := l.train(ctx, w, i, 2, drawPatch, progress)
			if err != nil {
				return err
			}
			began := time.Now()
			d := detector{net: net}
			if d.bias, err = d.tuneThreshold(ctx, tuning); err != nil {
				return fmt.Errorf("build ladder: %s: %w", w.Name, err)
			}
			score, err := d.score(ctx, held)
			if err != nil {
				return err
			}
			l.Seconds["measure "+w.Name] = time.Since(began).Seconds()
			if err := l.add(tmp, LadderVariant{
				Name: w.Name, Stage: Detect, Accuracy: score, Parameters: net.Parameters(),
				Multiplications: net.Multiplications(),
			}, d.graph(w.Name)); err != nil {
				return err
			}
		}
		for i, w := range s.Readers {
			net, err := l.train(ctx, w, len(s.Detectors)+i, 10, drawTrainingPicture, progress)
			if err != nil {
				return err
			}
			r := reader{net.At(Box, Box)}
			if err := l.add(tmp, LadderVariant{
				Name: w.Name, Stage: Read, Accuracy: r.score(held, s.Seed), Parameters: r.net.Parameters(),
				Multiplications: r.net.Multiplications(),
			}, r.graph(w.Name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// detection is a place that a detector takes for a digit.
type detection struct {
	place
	odds float64 // logarithm
}

// find lists the detections in a scene, best first. No two of them overlap by more than Overlap.
func (d *detector) find(r *nn.Runner, picture []uint8, least float64) []detection {
	x := make([]float32, len(picture))
	for i, v := range picture {
		x[i] = float32(v) * greyScale
	}
	scores := r.Places(x)
	n := len(scores) / 2
	side := int(math.Round(math.Sqrt(float64(n))))
	squares := boxes(side, side)
	var all, out []detection
	for i := range n {
		if odds := float64(scores[n+i] - scores[i]); odds >= least {
			all = append(all, detection{place{squares[4*i] + Box/2, squares[4*i+1] + Box/2}, odds})
		}
	}
	slices.SortStableFunc(all, func(a, b detection) int { return cmp.Compare(b.odds, a.odds) })
	for _, f := range all {
		if !slices.ContainsFunc(out, func(o detection) bool { return overlap(f.place, o.place) > Overlap }) {
			out = append(out, f)
		}
	}
	return out
}

// overlap is the intersection over union of the boxes around two points.
func overlap(a, b place) float64 {
	w, h := Box-math.Abs(float64(a.x-b.x)), Box-math.Abs(float64(a.y-b.y))
	if w <= 0 || h <= 0 {
		return 0
	}
	return w * h / (2*Box*Box - w*h)
}

// matchDistance is the largest distance from a digit's centre, in pixels, at which a detection counts for it. Readers
// are trained on digits that far off.
const matchDistance = 14

// Match pairs boxes with the digits of a scene. centres are those of the boxes, best box first. The result is by box
// the index of its digit in Digits, or -1.
func (s *Scene) Match(centres [][2]float32) []int {
	taken, out := make([]bool, len(s.Digits)), make([]int, len(centres))
	for i, c := range centres {
		out[i] = -1
		nearest := float64(matchDistance)
		for k, d := range s.Digits {
			if off := math.Hypot(float64(c[0]-d.X), float64(c[1]-d.Y)); !taken[k] && off <= nearest {
				out[i], nearest = k, off
			}
		}
		if out[i] >= 0 {
			taken[out[i]] = true
		}
	}
	return out
}

// scoredDetection is a detection, and whether it is a digit.
type scoredDetection struct {
	odds  float64
	right bool
}

// findAll returns the detections in scenes with odds of at least least, and the number of digits there are. It uses all
// cores.
func (d *detector) findAll(ctx context.Context, scenes []Scene, least float64) ([]scoredDetection, int, error) {
	by := make([][]scoredDetection, len(scenes))
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	whole := d.net.At(Size, Size)
	for w := range workers {
		wg.Go(func() {
			r := whole.Runner()
			for i := w; i < len(scenes) && ctx.Err() == nil; i += workers {
				all := d.find(r, scenes[i].Picture, least)
				centres := make([][2]float32, len(all))
				for k, f := range all {
					centres[k] = [2]float32{f.x, f.y}
				}
				for k, of := range scenes[i].Match(centres) {
					by[i] = append(by[i], scoredDetection{all[k].odds, of >= 0})
				}
			}
		})
	}
	wg.Wait()
	digits := 0
	for i := range scenes {
		digits += len(scenes[i].Digits)
	}
	return slices.Concat(by...), digits, ctx.Err()
}

// tuneThreshold finds the threshold on the odds with the highest harmonic mean of precision and recall, which is twice
// the correct detections over the sum of detections and digits.
func (d *detector) tuneThreshold(ctx context.Context, scenes []Scene) (float64, error) {
	all, digits, err := d.findAll(ctx, scenes, -4)
	if err != nil {
		return 0, err
	}
	slices.SortFunc(all, func(a, b scoredDetection) int { return cmp.Compare(b.odds, a.odds) })
	best, at, right := 0.0, 0.0, 0
	for i, f := range all {
		if f.right {
			right++
		}
		if mean := 2 * float64(right) / float64(i+1+digits); mean > best {
			best, at = mean, f.odds
		}
	}
	return at, nil
}

// score is the harmonic mean of precision and recall.
func (d *detector) score(ctx context.Context, scenes []Scene) (float64, error) {
	all, digits, err := d.findAll(ctx, scenes, d.bias)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	right := 0
	for _, f := range all {
		if f.right {
			right++
		}
	}
	return 2 * float64(right) / float64(len(all)+digits), nil
}

// reader reads the digit in a patch.
type reader struct{ net *nn.Net }

// graph writes the reader as a model.
func (r *reader) graph(name string) *onnxmodel.Graph {
	const n = onnxmodel.Symbolic
	g := onnxmodel.NewGraph("digits_"+name).Input("patch", onnxmodel.Uint8, n, 1, Box, Box)
	g.Initializer("grey", []float32{greyScale})
	g.Node("Cast", []string{"patch"}, []string{"levels"}, onnxmodel.AttrInt("to", int64(onnxmodel.Float32)))
	g.Node("Mul", []string{"levels", "grey"}, []string{"picture"})
	g.Node("Identity", []string{r.net.Export(g, "r_", "picture")}, []string{"logits"})
	g.Node("ArgMax", []string{"logits"}, []string{"label"}, onnxmodel.AttrInt("axis", 1),
		onnxmodel.AttrInt("keepdims", 0))
	return g.Output("logits", onnxmodel.Float32, n, 10).Output("label", onnxmodel.Int64, n)
}

// score is the share of the scenes' digits that are read correctly when the patch is up to 4 pixels off in both
// directions, half of the distance between two places of a detector.
func (r *reader) score(scenes []Scene, seed uint64) float64 {
	run, rng := r.net.Runner(), rand.New(rand.NewPCG(seed, seedScenes))
	x := make([]float32, Box*Box)
	right, all := 0, 0
	for i := range scenes {
		for _, d := range scenes[i].Digits {
			patch(scenes[i].Picture, int(d.X)-Box/2+rng.IntN(9)-4, int(d.Y)-Box/2+rng.IntN(9)-4, x)
			if best(run.Forward(x))[0] == d.Label {
				right++
			}
			all++
		}
	}
	return float64(right) / float64(max(all, 1))
}

// patch cuts Box by Box pixels out of a picture, its border repeated outwards.
func patch(picture []uint8, x, y int, to []float32) {
	for i := range Box {
		row := picture[min(max(y+i, 0), Size-1)*Size:][:Size]
		for j := range Box {
			to[i*Box+j] = float32(row[min(max(x+j, 0), Size-1)]) * greyScale
		}
	}
}
