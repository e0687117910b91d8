package training

import (
	"math"
	"math/rand/v2"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/examples/training/nn"
	"github.com/sluice-serving/sluice/internal/models/digits"
	"github.com/sluice-serving/sluice/internal/runtime/native"
)

// startRuntime loads ONNX Runtime, or skips the test where it is not installed.
func startRuntime(t testing.TB) {
	t.Helper()
	lib, err := native.ONNXRuntime()
	if err != nil {
		t.Skipf("not run without ONNX Runtime: %v", err)
	}
	ort.SetSharedLibraryPath(lib.Path)
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

// answers runs a batch of inputs of a shape, and returns its outputs.
func answers(t testing.TB, s *ort.DynamicAdvancedSession, in []uint8, outs int, shape ...int64) []ort.Value {
	t.Helper()
	x, err := ort.NewTensor(ort.NewShape(shape...), in)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]ort.Value, outs)
	err = s.Run([]ort.Value{x}, out)
	_ = x.Destroy()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, o := range out {
			_ = o.Destroy()
		}
	})
	return out
}

// classified returns logits and labels of square inputs.
func classified(t testing.TB, s *ort.DynamicAdvancedSession, images []uint8, side int64) ([]float32, []int64) {
	t.Helper()
	out := answers(t, s, images, 2, int64(len(images))/(side*side), 1, side, side)
	return out[0].(*ort.Tensor[float32]).GetData(), out[1].(*ort.Tensor[int64]).GetData()
}

// briefly trains a network for a few steps, so that no weight is where it began, and rounds it as a file does.
func briefly(t *testing.T, name, layers string, classes int, seed uint64) (*nn.Net, digits.Network) {
	t.Helper()
	net, err := newNet(layers, classes, rand.New(rand.NewPCG(seed, 1)))
	if err != nil {
		t.Fatal(err)
	}
	fill := drawDigit
	if classes == 2 {
		fill = drawPatch
	}
	err = nn.Train(t.Context(), net, nn.Training{
		Stages: []nn.Stage{{Size: 32, Steps: 8}}, Batch: 16, Rate: 5e-3, Seed: seed, Fill: fill,
	})
	if err != nil {
		t.Fatal(err)
	}
	out := digits.Network{Name: name, Layers: layers, Classes: classes}
	if err := round(net, &out); err != nil {
		t.Fatal(err)
	}
	return net, out
}

// What the runtime says of the model of a variant is what the forward pass says.
func TestRuntimeAgreesWithTheForwardPass(t *testing.T) {
	startRuntime(t)
	nets, l := map[string]*nn.Net{}, &digits.Ladder{}
	for i, x := range [][2]string{
		{"flat", "avg4"}, {"small", "avg2 conv3x8"}, {"deep", "conv5x8 max2 conv3x16 max2 avg2 conv3x16"},
	} {
		net, rounded := briefly(t, x[0], x[1], 10, uint64(i+1))
		nets[x[0]] = net
		l.Networks = append(l.Networks, rounded)
	}
	l.Variants = []digits.Variant{
		{Name: "flat", Networks: []string{"flat"}, Views: 1}, {Name: "deep", Networks: []string{"deep"}, Views: 1},
		{Name: "ensemble", Networks: []string{"deep", "small", "flat"}, Views: 1},
		{Name: "views", Networks: []string{"deep", "flat"}, Views: 5},
	}
	dir := t.TempDir()
	if err := l.Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, v := range l.Variants {
		s := session(t, digits.Model(dir, v.Name), "image", "logits", "label")
		for _, n := range []int{1, 7} {
			images, _ := digits.Set(uint64(n), n)
			logits, labels := classified(t, s, images, digits.Size)
			want := make([]float32, 10*n)
			for _, name := range v.Networks {
				for _, at := range digits.Lattice[:v.Views] {
					add(want, viewLogits(nets[name], at, images, func() bool { return false }))
				}
			}
			if len(logits) != 10*n || len(labels) != n {
				t.Fatalf("%s, batch of %d: %d logits, %d labels", v.Name, n, len(logits), len(labels))
			}
			for i, sum := range want {
				w := sum / float32(len(v.Networks)*v.Views)
				if got := logits[i]; math.Abs(float64(got-w)) > 2e-4*(1+math.Abs(float64(w))) {
					t.Errorf("%s, batch of %d, picture %d, logit %d: %v, want %v", v.Name, n, i/10, i%10, got, w)
				}
			}
			for i, label := range labels {
				if w := best(logits[10*i:][:10]); label != w {
					t.Errorf("%s, batch of %d, picture %d: label %d, want %d", v.Name, n, i, label, w)
				}
			}
		}
	}
}
