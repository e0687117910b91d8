package digits

import (
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// made is a ladder of two networks with random weights.
func made(t *testing.T) *Ladder {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	l := &Ladder{Seed: 3, HeldOut: HeldOut{Seed: 4, N: 50, Brief: 5}, Networks: []Network{
		{Name: "one", Layers: "avg2 conv3x4 max2", Classes: 10}, {Name: "two", Layers: "conv3x8", Classes: 2},
	}, Variants: []Variant{
		{Name: "a", Networks: []string{"one"}, Views: 2, Accuracy: 0.5, Brief: 0.4},
		{Name: "b", Stage: Detect, Networks: []string{"two"}, Bias: 0.1, Accuracy: 0.5, Brief: 0.4},
	}}
	for i := range l.Networks {
		shapes, err := l.Networks[i].shapes()
		if err != nil {
			t.Fatal(err)
		}
		var all []Linear
		for _, s := range shapes {
			x := Linear{make([]float32, s.outputs*s.inputs), make([]float32, s.outputs)}
			for k := range x.Weights {
				x.Weights[k] = float32(rng.NormFloat64())
			}
			clear(x.Weights[:s.inputs]) // an output that learned nothing
			for k := range x.Bias {
				x.Bias[k] = float32(rng.NormFloat64())
			}
			all = append(all, x)
		}
		if err := l.Networks[i].SetLinear(all); err != nil {
			t.Fatal(err)
		}
		for k, x := range l.Networks[i].Linear() {
			for j, w := range x.Weights {
				if was := all[k].Weights[j]; math.Abs(float64(w-was)) > 0.02 {
					t.Fatalf("weight %v became %v", was, w)
				}
			}
		}
	}
	return l
}

func TestSavedLaddersAreLoaded(t *testing.T) {
	l, dir := made(t), t.TempDir()
	if err := l.Save(dir); err != nil {
		t.Fatal(err)
	}
	if got, err := Load(os.DirFS(dir)); err != nil || !reflect.DeepEqual(got, l) {
		t.Errorf("%v, %+v", err, got)
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := made(t).Save(dir); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(fstest.MapFS){
		"one.bin: SHA-256 is":         func(f fstest.MapFS) { f["one.bin"].Data[9] ^= 1 },
		"two.bin: open two.bin":       func(f fstest.MapFS) { delete(f, "two.bin") },
		"open ladder.json":            func(f fstest.MapFS) { delete(f, "ladder.json") },
		`unknown field "seed_of_day"`: replace(`"seed"`, `"seed_of_day"`),
		"bytes of weights, want":      replace(`conv3x8`, `conv3x9`),
		`none is written "conv4x8"`:   replace(`conv3x8`, `conv4x8`),
		"ladder.json: json: cannot":   replace(`{`, ``),
	} {
		f := fstest.MapFS{}
		for _, name := range []string{"one.bin", "two.bin", "ladder.json"} {
			data, err := fs.ReadFile(os.DirFS(dir), name)
			if err != nil {
				t.Fatal(err)
			}
			f[name] = &fstest.MapFile{Data: data}
		}
		if _, err := Load(f); err != nil {
			t.Fatal(err)
		}
		change(f)
		if _, err := Load(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func replace(from, to string) func(fstest.MapFS) {
	return func(f fstest.MapFS) {
		text := string(f["ladder.json"].Data)
		f["ladder.json"].Data = []byte(strings.Replace(text, from, to, 1))
	}
}

func TestModelsHaveTheirInputsAndOutputs(t *testing.T) {
	l, dir := made(t), t.TempDir()
	for range 2 { // those that are there are replaced
		if err := l.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	whole := func(name string, d onnxmodel.DType, dims ...int64) onnxmodel.Value {
		return onnxmodel.Value{Name: name, DType: d, Shape: append([]int64{-1}, dims...),
			Symbols: append([]string{"N"}, make([]string, len(dims))...), Ranked: true}
	}
	image := []onnxmodel.Value{whole("image", onnxmodel.Uint8, 1, Size, Size)}
	for name, outputs := range map[string][]onnxmodel.Value{
		"a": {whole("logits", onnxmodel.Float32, 10), whole("label", onnxmodel.Int64)},
		"b": {whole("boxes", onnxmodel.Float32, Pixels, 4), whole("scores", onnxmodel.Float32, Pixels)},
	} {
		info, err := onnxmodel.Read(Model(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(info.Inputs, image) || !reflect.DeepEqual(info.Outputs, outputs) {
			t.Errorf("%s: %+v", name, info)
		}
	}
	for want, change := range map[string]func(*Variant){
		`no network "three"`:    func(v *Variant) { v.Networks[0] = "three" },
		"0 networks":            func(v *Variant) { v.Networks = nil },
		"1 networks and 9 view": func(v *Variant) { v.Views = len(Lattice) + 1 },
	} {
		l := made(t)
		change(&l.Variants[0])
		if err := l.Write(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestParseLayersRefuses(t *testing.T) {
	for _, words := range []string{"conv4x8", "conv3", "avg", "avg2x2", "max3", "max2x2", "relu"} {
		if _, err := ParseLayers(words); err == nil {
			t.Errorf("took %q", words)
		}
	}
}

// The models that the program carries are whole, are small, and get more accurate along their ladder.
func TestTrainedModelsAreWhole(t *testing.T) {
	var bytes int64
	err := fs.WalkDir(trained, ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		bytes += st.Size()
		return err
	})
	if err != nil || bytes > 1<<20 {
		t.Errorf("%d bytes, %v", bytes, err)
	}
	for folder, variants := range map[string]int{Pictures: 5, SceneModels: 4} {
		l, err := Trained(folder)
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Variants) != variants {
			t.Errorf("%s has %d variants", folder, len(l.Variants))
		}
		for i := range l.Variants {
			v := &l.Variants[i]
			if i > 0 && v.Stage == l.Variants[i-1].Stage && v.Accuracy <= l.Variants[i-1].Accuracy {
				t.Errorf("%s is no more accurate than %s", v.Name, l.Variants[i-1].Name)
			}
			if _, err := l.graph(v); err != nil {
				t.Errorf("%s: %v", v.Name, err)
			}
		}
	}
}
