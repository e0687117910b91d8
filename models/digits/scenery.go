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

// Overlap is the intersection over union from which two boxes of a scene are taken for one digit's.
const Overlap = 0.2

// scenery says everything that the models for scenes depend on, apart from this package's code, for which Format
// stands.
type scenery struct {
	Format    int
	Seed      uint64
	HeldOut   int // scenes, besides as many to set thresholds by
	Detectors []network
	Readers   []network
}

func fullScenery(seed uint64) scenery {
	patches := func(steps int) []nn.Stage { return []nn.Stage{{Size: Box, Steps: steps}} }
	return scenery{
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

// BuildScenery trains detectors, which find digits in a scene, and readers, which read one in a patch of Box by Box
// pixels, and writes them as a model repository, as Build does. The accuracy of a detector is the harmonic mean of its
// precision and recall on held-out scenes of 1 to 9 digits, that of a reader its share of patches of these scenes read
// rightly, when they are cut out a few pixels off.
//
// A detector takes "image" UINT8 [N,1,192,192] and gives "boxes" FP32 [N,P,4] (x1, y1, x2, y2 in pixels) and "scores"
// FP32 [N,P]: what scores at least 0.5 and overlaps no better one by more than Overlap is a digit. A reader takes
// "patch" UINT8 [N,1,40,40] and gives "logits" FP32 [N,10] and "label" INT64 [N].
func BuildScenery(ctx context.Context, dir string, seed uint64, progress Progress) (*Ladder, error) {
	return buildScenery(ctx, dir, fullScenery(seed), progress)
}

func buildScenery(ctx context.Context, dir string, s scenery, progress Progress) (*Ladder, error) {
	l := &Ladder{
		Task: sceneTask, Seed: s.Seed, Settings: hash(s), HeldOut: HeldOut{Seed: s.Seed ^ seedHeldOut, N: s.HeldOut},
		Seconds: map[string]float64{},
	}
	return l.make(dir, progress, func(tmp string, progress Progress) error {
		busy := func(i int) int { return 1 + i%9 }
		tuning, held := Scenes(s.Seed^seedTuning, s.HeldOut, busy), Scenes(l.HeldOut.Seed, s.HeldOut, busy)
		for i, w := range s.Detectors {
			net, err := l.train(ctx, w, i, 2, sight, progress)
			if err != nil {
				return err
			}
			began := time.Now()
			d := detector{net: net}
			if d.bias, err = d.tune(ctx, tuning); err != nil {
				return fmt.Errorf("build ladder: %s: %w", w.Name, err)
			}
			score, err := d.score(ctx, held)
			if err != nil {
				return err
			}
			l.Seconds["measure "+w.Name] = time.Since(began).Seconds()
			if err := l.add(tmp, LadderVariant{
				Name: w.Name, Stage: Detect, Accuracy: score, Parameters: net.Parameters(), Products: net.Products(),
			}, d.graph(w.Name)); err != nil {
				return err
			}
		}
		for i, w := range s.Readers {
			net, err := l.train(ctx, w, len(s.Detectors)+i, 10, practise, progress)
			if err != nil {
				return err
			}
			r := reader{net.At(Box, Box)}
			if err := l.add(tmp, LadderVariant{
				Name: w.Name, Stage: Read, Accuracy: r.score(held, s.Seed), Parameters: r.net.Parameters(),
				Products: r.net.Products(),
			}, r.graph(w.Name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// found is what a detector takes for a digit.
type found struct {
	place
	odds float64 // logarithm
}

// look lists what a detector finds in a scene, best first: no two of them overlap by more than Overlap.
func (d *detector) look(r *nn.Runner, picture []uint8, least float64) []found {
	x := make([]float32, len(picture))
	for i, v := range picture {
		x[i] = float32(v) * grey
	}
	scores := r.Places(x)
	n := len(scores) / 2
	side := int(math.Round(math.Sqrt(float64(n))))
	squares := boxes(side, side)
	var all, out []found
	for i := range n {
		if odds := float64(scores[n+i] - scores[i]); odds >= least {
			all = append(all, found{place{squares[4*i] + Box/2, squares[4*i+1] + Box/2}, odds})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.odds, a.odds) })
	for _, f := range all {
		if !slices.ContainsFunc(out, func(o found) bool { return overlap(f.place, o.place) > Overlap }) {
			out = append(out, f)
		}
	}
	return out
}

// overlap is the intersection over union of the boxes round two points.
func overlap(a, b place) float64 {
	w, h := Box-math.Abs(float64(a.x-b.x)), Box-math.Abs(float64(a.y-b.y))
	if w <= 0 || h <= 0 {
		return 0
	}
	return w * h / (2*Box*Box - w*h)
}

// matched is how far from a digit's centre, in pixels, what is found still counts for it: a reader has seen digits that
// far off.
const matched = 14

// Match pairs boxes, best first, with digits of a scene: for each box the digit it is of, or -1.
func (s *Scene) Match(centres [][2]float32) []int {
	taken, out := make([]bool, len(s.Digits)), make([]int, len(centres))
	for i, c := range centres {
		out[i] = -1
		nearest := float64(matched)
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

// judged is something found, and whether it is a digit.
type judged struct {
	odds  float64
	right bool
}

// judge looks at scenes on all cores: what is found with odds of at least least, and how many digits there are.
func (d *detector) judge(ctx context.Context, scenes []Scene, least float64) ([]judged, int, error) {
	by := make([][]judged, len(scenes))
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	whole := d.net.At(Size, Size)
	for w := range workers {
		wg.Go(func() {
			r := whole.Runner()
			for i := w; i < len(scenes) && ctx.Err() == nil; i += workers {
				all := d.look(r, scenes[i].Picture, least)
				centres := make([][2]float32, len(all))
				for k, f := range all {
					centres[k] = [2]float32{f.x, f.y}
				}
				for k, of := range scenes[i].Match(centres) {
					by[i] = append(by[i], judged{all[k].odds, of >= 0})
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

// tune finds the odds from which on what is found is best taken for a digit: those with the highest harmonic mean of
// precision and recall, which is twice the right ones over the found and the present.
func (d *detector) tune(ctx context.Context, scenes []Scene) (float64, error) {
	all, digits, err := d.judge(ctx, scenes, -4)
	if err != nil {
		return 0, err
	}
	slices.SortFunc(all, func(a, b judged) int { return cmp.Compare(b.odds, a.odds) })
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
	all, digits, err := d.judge(ctx, scenes, d.bias)
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
	g.Initializer("grey", []float32{grey})
	g.Node("Cast", []string{"patch"}, []string{"levels"}, onnxmodel.AttrInt("to", int64(onnxmodel.Float32)))
	g.Node("Mul", []string{"levels", "grey"}, []string{"picture"})
	g.Node("Identity", []string{r.net.Export(g, "r_", "picture")}, []string{"logits"})
	g.Node("ArgMax", []string{"logits"}, []string{"label"}, onnxmodel.AttrInt("axis", 1),
		onnxmodel.AttrInt("keepdims", 0))
	return g.Output("logits", onnxmodel.Float32, n, 10).Output("label", onnxmodel.Int64, n)
}

// score is the share of the scenes' digits that are read rightly when the patch is up to 4 pixels off in both
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
			to[i*Box+j] = float32(row[min(max(x+j, 0), Size-1)]) * grey
		}
	}
}
