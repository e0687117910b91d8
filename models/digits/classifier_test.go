package digits

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/models/digits/nn"
)

// startRuntime loads ONNX Runtime, or skips the test where it is not installed.
func startRuntime(t testing.TB) {
	t.Helper()
	lib := os.Getenv("SLUICE_ONNXRUNTIME")
	if lib == "" {
		lib = filepath.Join("..", "..", "node_modules", "onnxruntime-node", "bin", "napi-v6", "linux", "x64",
			"libonnxruntime.so.1")
	}
	if _, err := os.Stat(lib); err != nil {
		t.Skipf("ONNX Runtime is not installed (%v): run npm ci --ignore-scripts, or set SLUICE_ONNXRUNTIME to the "+
			"library", err)
	}
	ort.SetSharedLibraryPath(lib)
	if err := ort.InitializeEnvironment(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ort.DestroyEnvironment() })
}

// session opens a model on one thread.
func session(t testing.TB, path string, in string, outs ...string) *ort.DynamicAdvancedSession {
	t.Helper()
	o, err := ort.NewSessionOptions()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.Destroy() }()
	if err := o.SetIntraOpNumThreads(1); err != nil {
		t.Fatal(err)
	}
	s, err := ort.NewDynamicAdvancedSession(path, []string{in}, outs, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Destroy() })
	return s
}

// run answers a batch and returns logits and labels.
func run(t testing.TB, s *ort.DynamicAdvancedSession, images []uint8) ([]float32, []int64) {
	t.Helper()
	in, err := ort.NewTensor(ort.NewShape(int64(len(images)/Pixels), 1, Size, Size), images)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Destroy() }()
	out := []ort.Value{nil, nil}
	if err := s.Run([]ort.Value{in}, out); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out[0].Destroy(); _ = out[1].Destroy() }()
	logits, labels := out[0].(*ort.Tensor[float32]), out[1].(*ort.Tensor[int64])
	return append([]float32(nil), logits.GetData()...), append([]int64(nil), labels.GetData()...)
}

// briefly trains a network for a few steps, so that no weight is where it began.
func briefly(t *testing.T, layers string, seed uint64) *nn.Net {
	t.Helper()
	net, err := newNetwork(layers, 10, rand.New(rand.NewPCG(seed, 1)))
	if err != nil {
		t.Fatal(err)
	}
	err = nn.Train(context.Background(), net, nn.Training{
		Stages: []nn.Stage{{Size: 32, Steps: 8}}, Batch: 16, Rate: 5e-3, Seed: seed, Fill: drawTrainingPicture,
	})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

func TestRuntimeAgreesWithTheForwardPass(t *testing.T) {
	startRuntime(t)
	flat := briefly(t, "avg4", 1)
	small := briefly(t, "avg2 conv3x8", 2)
	deep := briefly(t, "conv5x8 max2 conv3x16 max2 avg2 conv3x16", 3)
	for name, c := range map[string]*classifier{
		"flat":     newClassifier([]*nn.Net{flat}, 1),
		"deep":     newClassifier([]*nn.Net{deep}, 1),
		"ensemble": newClassifier([]*nn.Net{deep, small, flat}, 1),
		"views":    newClassifier([]*nn.Net{deep, flat}, 5),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.onnx")
			if err := c.graph(name).Write(path); err != nil {
				t.Fatal(err)
			}
			s := session(t, path, "image", "logits", "label")
			for _, n := range []int{1, 7} {
				images, _ := Set(uint64(n), n)
				logits, labels := run(t, s, images)
				if len(logits) != 10*n || len(labels) != n {
					t.Fatalf("batch of %d: %d logits, %d labels", n, len(logits), len(labels))
				}
				wantLabels, want := c.predict(images)
				for i, v := range want {
					if got := logits[i]; math.Abs(float64(got-v)) > 2e-4*(1+math.Abs(float64(v))) {
						t.Errorf("batch of %d, picture %d, logit %d: %v, want %v", n, i/10, i%10, got, v)
					}
				}
				if !slices.Equal(labels, wantLabels) {
					t.Errorf("batch of %d: labels %d, want %d", n, labels, wantLabels)
				}
			}
		})
	}
}

func TestNewNetworkRefuses(t *testing.T) {
	for _, layers := range []string{"conv4x8", "conv3", "avg", "max3", "relu"} {
		if _, err := newNetwork(layers, 10, rand.New(rand.NewPCG(1, 1))); err == nil {
			t.Errorf("took %q", layers)
		}
	}
}

func TestViewsMovePictures(t *testing.T) {
	picture, moved := make([]float32, Pixels), make([]float32, Pixels)
	for i := range picture {
		picture[i] = float32(i)
	}
	if lattice[0] != (view{}) {
		t.Errorf("the first view is %v", lattice[0])
	}
	for _, v := range lattice {
		v.shift(picture, moved)
		for i, got := range moved {
			x, y := min(max(i%Size+v.dx, 0), Size-1), min(max(i/Size+v.dy, 0), Size-1)
			if got != picture[y*Size+x] {
				t.Fatalf("view %v, pixel %d: %v, want %v", v, i, got, picture[y*Size+x])
			}
		}
		if max(v.dx, -v.dx, v.dy, -v.dy) > maxShift {
			t.Errorf("view %v moves further than %d", v, maxShift)
		}
	}
}

// TestViewsFillTheGapEvenly checks that the first two, four and eight views are equally far apart on the torus of the 8
// pixels between the places that a network looks at: each has another at the distance all others have one.
func TestViewsFillTheGapEvenly(t *testing.T) {
	const gap = 8
	for n, want := range map[int]int{2: 32, 4: 16, 8: 8} {
		for _, a := range lattice[:n] {
			nearest := gap * gap
			for _, b := range lattice[:n] {
				dx, dy := (a.dx-b.dx+gap)%gap, (a.dy-b.dy+gap)%gap
				dx, dy = min(dx, gap-dx), min(dy, gap-dy)
				if a != b {
					nearest = min(nearest, dx*dx+dy*dy)
				}
			}
			if nearest != want {
				t.Errorf("of %d views, %v has its nearest at a squared distance of %d, want %d", n, a, nearest, want)
			}
		}
	}
}
