package training

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/examples/training/nn"
	"github.com/sluice-serving/sluice/internal/models/digits"
)

// reduced are ladders small enough for a test.
func reduced() (pictures, scenes settings) {
	pictures = settings{
		Seed: 11, HeldOut: digits.HeldOut{Seed: 11 ^ seedHeldOut, N: 300, Brief: 60},
		Networks: []network{
			{"coarse", "avg4 conv3x8", 10, drawDigit, []nn.Stage{{Size: 32, Steps: 40}}, 32, 2e-2},
			{
				"fine", "avg2 conv3x16 max2 conv3x32 max2 conv3x32", 10, drawDigit, []nn.Stage{
					{Size: 32, Steps: 150}, {Size: 64, Steps: 50},
				}, 32, 2e-2,
			},
		},
		Variants: []digits.Variant{
			{Name: "nano", Networks: []string{"coarse"}, Views: 1},
			{Name: "small", Networks: []string{"fine"}, Views: 1},
			{Name: "both", Networks: []string{"fine", "coarse"}, Views: 2},
		},
	}
	patches := []nn.Stage{{Size: digits.Box, Steps: 120}}
	scenes = settings{
		Seed: 5, HeldOut: digits.HeldOut{Seed: 5 ^ seedHeldOut, N: 40, Brief: 20},
		Networks: []network{
			{"find", "avg2 conv3x16 max2 conv3x32 max2 conv3x32", 2, drawPatch, patches, 32, 2e-2},
			{"tell", "avg2 conv3x16 max2 conv3x32", 10, drawDigit, patches, 32, 2e-2},
		},
		Variants: []digits.Variant{
			{Name: "find", Stage: digits.Detect, Networks: []string{"find"}},
			{Name: "tell", Stage: digits.Read, Networks: []string{"tell"}},
		},
	}
	return pictures, scenes
}

// Training gives models that are better than chance, says how far it is, and gives the same bytes again.
func TestReducedTraining(t *testing.T) {
	pictures, scenes := reduced()
	dir, last := t.TempDir(), 0.0
	err := run(t.Context(), dir, pictures, scenes, func(share float64, doing string) {
		if share < last || share > 1 || doing == "" {
			t.Errorf("%v after %v, %q", share, last, doing)
		}
		last = share
	})
	if err != nil || last < 0.9 {
		t.Fatalf("ended at %v: %v", last, err)
	}
	l, err := digits.Load(os.DirFS(filepath.Join(dir, digits.Pictures)))
	if err != nil {
		t.Fatal(err)
	}
	if nano, small := l.Variants[0].Accuracy, l.Variants[1].Accuracy; small < 0.3 || small < nano+0.1 {
		t.Errorf("accuracies %v and %v", nano, small)
	}
	if l, err = digits.Load(os.DirFS(filepath.Join(dir, digits.SceneModels))); err != nil {
		t.Fatal(err)
	}
	if find, tell := l.Variants[0].Accuracy, l.Variants[1].Accuracy; find < 0.4 || tell < 0.2 {
		t.Errorf("accuracies %v and %v", find, tell)
	}
	again := t.TempDir()
	pictures, scenes = reduced()
	if err := run(t.Context(), again, pictures, scenes, nil); err != nil {
		t.Fatal(err)
	}
	sameFiles(t, os.DirFS(again), os.DirFS(dir))
}

func TestTrainingStopsAndLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	pictures, scenes := reduced()
	dir := t.TempDir()
	err := run(ctx, dir, pictures, scenes, func(_ float64, doing string) {
		if doing == "training fine" {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

// Each classifier costs between two and five times the one before, so that taking a step changes what a machine
// carries, and no step is so wide that most loads fall between two variants.
func TestClassifiersHaveStepsWorthTaking(t *testing.T) {
	s, before := classifiers(1), 0
	for _, v := range s.Variants {
		cost := 0
		for _, name := range v.Networks {
			i := slices.IndexFunc(s.Networks, func(n network) bool { return n.Name == name })
			net, err := newNet(s.Networks[i].Layers, 10, rand.New(rand.NewPCG(1, 1)))
			if err != nil {
				t.Fatal(err)
			}
			cost += v.Views * net.Multiplications()
		}
		t.Logf("%-8s %6.1f million products a picture", v.Name, float64(cost)/1e6)
		if before > 0 && (cost < 2*before || cost > 5*before) {
			t.Errorf("%s takes %d products, the variant before %d", v.Name, cost, before)
		}
		before = cost
	}
}
