package training

import (
	"bytes"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/examples/training/nn"
	"github.com/sluice-serving/sluice/internal/models/digits"
)

// sameFiles compares all files below two folders.
func sameFiles(t *testing.T, got, want fs.FS) {
	t.Helper()
	err := fs.WalkDir(want, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		a, err := fs.ReadFile(got, path)
		if err != nil {
			return err
		}
		if b, err := fs.ReadFile(want, path); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Training with the seed of the models that the program carries gives their bytes.
func TestTrainingGivesTheModelsOfTheProgram(t *testing.T) {
	if os.Getenv("SLUICE_LONG") == "" {
		t.Skip("training takes five minutes: SLUICE_LONG=1 does it")
	}
	if !nn.Reproducible() {
		t.Skip("this processor rounds otherwise than the one that trained them: it lacks AVX2 or FMA")
	}
	l, err := digits.Trained(digits.Pictures)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := Run(t.Context(), dir, l.Seed, nil); err != nil {
		t.Fatal(err)
	}
	sameFiles(t, os.DirFS(dir), os.DirFS(filepath.Join("..", "..", "internal", "models", "digits", "trained")))
}

// The models that the program carries are right, in the runtime that serves them, as often as is written beside them.
func TestTrainedModelsAreAsAccurateAsTheySay(t *testing.T) {
	startRuntime(t)
	dir := t.TempDir()
	check := func(name string, got, want float64, of int) {
		t.Logf("%-8s %.4f of the first %d, %.4f are written", name, got, of, want)
		// Rounding may tip a picture that lies between two labels.
		if math.Abs(got-want) > 1.01/float64(of) {
			t.Errorf("%s: accuracy %v of the first %d, %v is written", name, got, of, want)
		}
	}
	for _, folder := range []string{digits.Pictures, digits.SceneModels} {
		l, err := digits.Trained(folder)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Write(dir); err != nil {
			t.Fatal(err)
		}
		for _, v := range l.Variants {
			path := digits.Model(dir, v.Name)
			switch v.Stage {
			case digits.Detect:
				scenes := heldOutScenes(l.HeldOut.Seed, l.HeldOut.Brief)
				s := session(t, path, "image", "boxes", "scores")
				var all []scoredDetection
				there := 0
				for i := range scenes {
					_, scores := found(t, s, scenes[i].Picture)
					there += len(scenes[i].Digits)
					all = append(all, scored(&scenes[i], pick(float64s(scores), 0.5))...)
				}
				check(v.Name, harmonic(all, there), v.Brief, there)
			case digits.Read:
				patches, labels := cutOut(heldOutScenes(l.HeldOut.Seed, l.HeldOut.Brief))
				s := session(t, path, "patch", "logits", "label")
				_, got := classified(t, s, slices.Concat(patches...), digits.Box)
				check(v.Name, rightly(got, labels), v.Brief, len(labels))
			default:
				images, labels := digits.Set(l.HeldOut.Seed, l.HeldOut.Brief)
				_, got := classified(t, session(t, path, "image", "logits", "label"), images, digits.Size)
				check(v.Name, rightly(got, labels), v.Brief, len(labels))
			}
		}
	}
}

func float64s(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func rightly(got, want []int64) float64 {
	right := 0
	for i := range want {
		if got[i] == want[i] {
			right++
		}
	}
	return float64(right) / float64(len(want))
}
