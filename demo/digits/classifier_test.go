package digits

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/demo/digits/nn"
)

// startRuntime loads ONNX Runtime, or skips the test where it is not installed.
func startRuntime(t testing.TB) {
	t.Helper()
	lib := os.Getenv("SLUICE_ONNXRUNTIME")
	if lib == "" {
		lib = filepath.Join("..", "..", "node_modules", "onnxruntime-node", "bin", "napi-v6", "linux", "x64", "libonnxruntime.so.1")
	}
	if _, err := os.Stat(lib); err != nil {
		t.Skipf("ONNX Runtime is not installed (%v): run npm ci --ignore-scripts, or set SLUICE_ONNXRUNTIME to the library", err)
	}
	ort.SetSharedLibraryPath(lib)
	if err := ort.InitializeEnvironment(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ort.DestroyEnvironment() })
}

// session opens a model on one thread.
func session(t testing.TB, path string) *ort.DynamicAdvancedSession {
	t.Helper()
	o, err := ort.NewSessionOptions()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.Destroy() }()
	if err := o.SetIntraOpNumThreads(1); err != nil {
		t.Fatal(err)
	}
	s, err := ort.NewDynamicAdvancedSession(path, []string{"image"}, []string{"logits", "label"}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Destroy() })
	return s
}

// run answers a batch and returns logits and labels.
func run(t testing.TB, s *ort.DynamicAdvancedSession, images []float32) ([]float32, []int64) {
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
	net, err := newNetwork(layers, rand.New(rand.NewPCG(seed, 1)))
	if err != nil {
		t.Fatal(err)
	}
	err = nn.Train(context.Background(), net, nn.Training{Steps: 8, Batch: 16, Rate: 5e-3, Seed: seed,
		Fill: func(rng *rand.Rand, x []float32) int {
			label := rng.IntN(10)
			render(rng, label, x)
			return label
		}})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

func TestRuntimeAgreesWithTheForwardPass(t *testing.T) {
	startRuntime(t)
	linear := briefly(t, "avg4", 1)
	mlp := briefly(t, "avg2 dense20", 2)
	conv := briefly(t, "pad2 conv5x8 max2 conv3x16 max2 avg2 dense12", 3)
	for name, c := range map[string]*classifier{
		"linear":   newClassifier([]*nn.Net{linear}, 1),
		"mlp":      newClassifier([]*nn.Net{mlp}, 1),
		"conv":     newClassifier([]*nn.Net{conv}, 1),
		"ensemble": newClassifier([]*nn.Net{conv, mlp, linear}, 1),
		"views":    newClassifier([]*nn.Net{conv, linear}, 5),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.onnx")
			if err := c.graph(name).Write(path); err != nil {
				t.Fatal(err)
			}
			s := session(t, path)
			p := c.predictor()
			for _, n := range []int{1, 7} {
				images, _ := Set(uint64(n), n)
				logits, labels := run(t, s, images)
				if len(logits) != 10*n || len(labels) != n {
					t.Fatalf("batch of %d: %d logits, %d labels", n, len(logits), len(labels))
				}
				for i := range n {
					label, want := p.predict(images[i*Pixels : (i+1)*Pixels])
					if int64(label) != labels[i] {
						t.Errorf("batch of %d, image %d: label %d, want %d", n, i, labels[i], label)
					}
					for j, v := range want {
						if got := logits[i*10+j]; math.Abs(float64(got-v)) > 2e-4*(1+math.Abs(float64(v))) {
							t.Errorf("batch of %d, image %d, logit %d: %v, want %v", n, i, j, got, v)
						}
					}
				}
			}
		})
	}
}

func TestNewNetworkRefuses(t *testing.T) {
	for _, layers := range []string{"conv4x8", "conv3", "dense", "max3", "relu", "pad", "pad2 avg2"} {
		if _, err := newNetwork(layers, rand.New(rand.NewPCG(1, 1))); err == nil {
			t.Errorf("took %q", layers)
		}
	}
}

func TestFirstViewIsTheImage(t *testing.T) {
	img := Render(rand.New(rand.NewPCG(1, 2)), 7)
	var got [Pixels]float32
	look(img[:], views(3)[0].grid(), got[:])
	for i := range img {
		if math.Abs(float64(img[i]-got[i])) > 1e-5 {
			t.Fatalf("pixel %d: %v, want %v", i, got[i], img[i])
		}
	}
}
