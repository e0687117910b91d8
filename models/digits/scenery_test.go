package digits

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/models/digits/nn"
)

func TestScenes(t *testing.T) {
	count := func(i int) int { return i % 15 }
	a, b := Scenes(3, 30, count), Scenes(3, 20, count)
	for i, s := range a {
		if i < len(b) && (!slices.Equal(s.Picture, b[i].Picture) || !slices.Equal(s.Digits, b[i].Digits)) {
			t.Fatalf("scene %d differs with the number of scenes", i)
		}
		if len(s.Picture) != Pixels || len(s.Digits) > min(count(i), MaxDigits) || len(s.Digits) < min(count(i), 6) {
			t.Errorf("scene %d has %d digits, asked for %d", i, len(s.Digits), count(i))
		}
		for k, d := range s.Digits {
			for _, o := range s.Digits[:k] {
				if math.Hypot(float64(d.X-o.X), float64(d.Y-o.Y)) < clearance {
					t.Errorf("scene %d: digits at %v and %v touch", i, d, o)
				}
			}
			if d.Label < 0 || d.Label > 9 || d.X < 0 || d.X > Size || d.Y < 0 || d.Y > Size {
				t.Errorf("scene %d: %+v", i, d)
			}
		}
	}
}

func TestMatch(t *testing.T) {
	s := Scene{Digits: []Digit{{1, 50, 50}, {2, 90, 50}}}
	// The first takes the nearer digit; the second finds it taken and the other too far; the third is near the other.
	if got := s.Match([][2]float32{{52, 50}, {50, 51}, {88, 60}, {10, 10}}); !slices.Equal(got, []int{0, -1, 1, -1}) {
		t.Error(got)
	}
}

func TestOverlap(t *testing.T) {
	for _, x := range []struct {
		dx, dy float32
		want   float64
	}{{0, 0, 1}, {Box, 0, 0}, {0, 2 * Box, 0}, {Box / 2, 0, 1. / 3}, {Box / 2, Box / 2, 1. / 7}} {
		if got := overlap(place{10, 10}, place{10 + x.dx, 10 - x.dy}); math.Abs(got-x.want) > 1e-6 {
			t.Errorf("%v, %v: %v, want %v", x.dx, x.dy, got, x.want)
		}
	}
}

// What the runtime says of a scene is what the forward pass says, for batches as well; a detector and a reader that
// were trained for seconds find and read more than chance would.
func TestScenery(t *testing.T) {
	startRuntime(t)
	dir := filepath.Join(t.TempDir(), "models")
	s := sceneSettings{Format: 1, Seed: 5, HeldOut: 40,
		Detectors: []network{
			{"find", "avg2 conv3x16 max2 conv3x32 max2 conv3x32", []nn.Stage{{Size: Box, Steps: 120}}, 32, 2e-2},
		},
		Readers: []network{{"tell", "avg2 conv3x16 max2 conv3x32", []nn.Stage{{Size: Box, Steps: 120}}, 32, 2e-2}},
	}
	l, err := buildScenery(context.Background(), dir, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Variants) != 2 || l.Variants[0].Stage != Detect || l.Variants[1].Stage != Read {
		t.Fatalf("%+v", l.Variants)
	}
	if l.Variants[0].Accuracy < 0.4 || l.Variants[1].Accuracy < 0.2 {
		t.Errorf("accuracies %.3f and %.3f", l.Variants[0].Accuracy, l.Variants[1].Accuracy)
	}
	if again, err := buildScenery(context.Background(), dir, s, func(string, float64, float64) {
		t.Error("built again")
	}); err != nil || again.Settings != l.Settings {
		t.Error(again, err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("models for scenes were taken for the ladder")
	}

	scenes := Scenes(8, 3, func(i int) int { return 2 + i })
	var images []uint8
	for _, x := range scenes {
		images = append(images, x.Picture...)
	}
	find := session(t, Model(dir, "find"), "image", "boxes", "scores")
	in, err := ort.NewTensor(ort.NewShape(3, 1, Size, Size), images)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Destroy() }()
	out := []ort.Value{nil, nil}
	if err := find.Run([]ort.Value{in}, out); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out[0].Destroy(); _ = out[1].Destroy() }()
	squares, scores := out[0].(*ort.Tensor[float32]), out[1].(*ort.Tensor[float32])
	if !squares.GetShape().Equals(ort.NewShape(3, 576, 4)) || !scores.GetShape().Equals(ort.NewShape(3, 576)) {
		t.Fatalf("shapes %v and %v", squares.GetShape(), scores.GetShape())
	}
	for k := range 3 {
		if !slices.Equal(squares.GetData()[k*576*4:(k+1)*576*4], boxes(24, 24)) {
			t.Errorf("boxes of scene %d", k)
		}
		for i, p := range scores.GetData()[k*576 : (k+1)*576] {
			if !(p >= 0 && p <= 1) {
				t.Fatalf("score %d of scene %d is %v", i, k, p)
			}
		}
	}
	// The half that counts as found is where the forward pass has odds above the bias.
	found := 0
	for _, p := range scores.GetData() {
		if p >= 0.5 {
			found++
		}
	}
	if found == 0 || found > 3*576/8 {
		t.Errorf("%d places of %d count as digits", found, 3*576)
	}
}

// The model of a detector gives the scores that the forward pass gives.
func TestDetectorGraph(t *testing.T) {
	startRuntime(t)
	net, err := newNetwork("avg2 conv3x8 max2 conv3x8 max2 conv3x8", 2, rand.New(rand.NewPCG(4, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := nn.Train(context.Background(), net, nn.Training{
		Stages: []nn.Stage{{Size: 32, Steps: 8}}, Batch: 16, Rate: 5e-3, Seed: 4, Fill: drawPatch,
	}); err != nil {
		t.Fatal(err)
	}
	d := detector{net: net, bias: 0.7}
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := d.graph("d").Write(path); err != nil {
		t.Fatal(err)
	}
	s := session(t, path, "image", "scores")
	scene := Scenes(2, 1, func(int) int { return 4 })[0]
	in, err := ort.NewTensor(ort.NewShape(1, 1, Size, Size), scene.Picture)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Destroy() }()
	out := []ort.Value{nil}
	if err := s.Run([]ort.Value{in}, out); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out[0].Destroy() }()
	got := out[0].(*ort.Tensor[float32]).GetData()
	x := make([]float32, Pixels)
	for i, v := range scene.Picture {
		x[i] = float32(v) * greyScale
	}
	want := net.At(Size, Size).Runner().Places(x)
	for i, p := range got {
		chance := 1 / (1 + math.Exp(d.bias-float64(want[576+i]-want[i])))
		if math.Abs(float64(p)-chance) > 1e-4 {
			t.Fatalf("place %d: %v, want %v", i, p, chance)
		}
	}
}
