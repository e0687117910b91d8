package digits

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/models/digits/nn"
	"github.com/sluice-serving/sluice/models/onnxmodel"
)

// reduced is a ladder small enough for a test.
func reduced() settings {
	return settings{Format: 1, Seed: 11, HeldOut: 300,
		Networks: []network{
			{"coarse", "avg4 conv3x8", []nn.Stage{{Size: 32, Steps: 40}}, 32, 2e-2},
			{
				"fine", "avg2 conv3x16 max2 conv3x32 max2 conv3x32", []nn.Stage{
					{Size: 32, Steps: 150}, {Size: 64, Steps: 50},
				}, 32, 2e-2,
			},
		},
		Variants: []variant{
			{"nano", []string{"coarse"}, 1},
			{"small", []string{"fine"}, 1},
			{"both", []string{"fine", "coarse"}, 2},
		}}
}

func TestBuildReducedLadder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "models")
	stages := map[string]float64{}
	l, err := build(context.Background(), dir, reduced(), func(stage string, done, total float64) {
		if done < stages[stage] || done > total {
			t.Errorf("stage %s: %v of %v after %v", stage, done, total, stages[stage])
		}
		stages[stage] = done
	})
	if err != nil {
		t.Fatal(err)
	}
	if stages["train coarse"] != 40 || stages["train fine"] != 200 || stages["measure accuracy"] != 4 {
		t.Errorf("stages ended at %v", stages)
	}
	if nano, small := l.Variants[0].Accuracy, l.Variants[1].Accuracy; small < 0.3 || small < nano+0.1 {
		t.Errorf("accuracies %v and %v", nano, small)
	}
	if l.Variants[0].Parameters != 8*9+8+8*10+10 || l.Variants[2].Parameters != l.Variants[0].Parameters+
		l.Variants[1].Parameters {
		t.Errorf("parameters: %+v", l.Variants)
	}
	for _, v := range l.Variants {
		info, err := onnxmodel.Read(Model(dir, v.Name))
		if err != nil {
			t.Fatal(err)
		}
		in := []onnxmodel.Value{
			{Name: "image", DType: onnxmodel.Uint8, Shape: []int64{-1, 1, Size, Size}, Ranked: true},
		}
		out := []onnxmodel.Value{{Name: "logits", DType: onnxmodel.Float32, Shape: []int64{-1, 10}, Ranked: true},
			{Name: "label", DType: onnxmodel.Int64, Shape: []int64{-1}, Ranked: true}}
		if !reflect.DeepEqual(info.Inputs, in) || !reflect.DeepEqual(info.Outputs, out) {
			t.Errorf("%s: %+v", v.Name, info)
		}
	}
	loaded, err := Load(dir)
	if err != nil || !reflect.DeepEqual(loaded, l) {
		t.Errorf("loaded %+v, %v", loaded, err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}

	t.Run("again is a no-op", func(t *testing.T) {
		again, err := build(context.Background(), dir, reduced(), func(stage string, _, _ float64) {
			t.Errorf("ran %s", stage)
		})
		if err != nil || !reflect.DeepEqual(again, l) {
			t.Errorf("got %+v, %v", again, err)
		}
	})
	t.Run("the seed decides", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "other")
		if _, err := build(context.Background(), other, reduced(), nil); err != nil {
			t.Fatal(err)
		}
		a, _ := os.ReadFile(Model(dir, "both"))
		b, _ := os.ReadFile(Model(other, "both"))
		if len(a) == 0 || !bytes.Equal(a, b) {
			t.Error("the same settings gave different models")
		}
	})
	t.Run("other settings replace it", func(t *testing.T) {
		s := reduced()
		s.Seed, s.Networks, s.Variants = 12, s.Networks[:1], s.Variants[:1]
		l, err := build(context.Background(), dir, s, nil)
		if err != nil || len(l.Variants) != 1 {
			t.Fatalf("%+v, %v", l, err)
		}
		if _, err := os.Stat(Model(dir, "both")); !os.IsNotExist(err) {
			t.Errorf("the old ladder is still there: %v", err)
		}
	})
}

func TestBuildMeasuresWhatTheRuntimeServes(t *testing.T) {
	startRuntime(t)
	dir := filepath.Join(t.TempDir(), "models")
	s := reduced()
	s.HeldOut = 100
	l, err := build(context.Background(), dir, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	images, labels := Set(l.HeldOut.Seed, l.HeldOut.N)
	for _, v := range l.Variants {
		_, got := run(t, session(t, Model(dir, v.Name), "image", "logits", "label"), images)
		right := 0
		for i, want := range labels {
			if got[i] == want {
				right++
			}
		}
		// Rounding may tip an image that lies between two labels.
		if off := math.Abs(float64(right)/float64(len(labels)) - v.Accuracy); off > 0.011 {
			t.Errorf("%s: the runtime labels %d of %d rightly, the ladder says %v", v.Name, right, len(labels),
				v.Accuracy)
		}
	}
}

func TestBuildStopsAndLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	dir := filepath.Join(t.TempDir(), "models")
	_, err := build(ctx, dir, reduced(), func(stage string, _, _ float64) {
		if stage == "train fine" {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

func TestBuildKeepsForeignFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := build(context.Background(), dir, reduced(), nil); err == nil ||
		!strings.Contains(err.Error(), "something else") {
		t.Errorf("got %v", err)
	}
}

func TestFullSettingsAreWhole(t *testing.T) {
	s := full(1)
	if s.HeldOut < 1000 || len(s.Variants) < 4 || hash(s) == hash(full(2)) || hash(s) != hash(full(1)) {
		t.Errorf("settings %+v", s)
	}
	names := map[string]bool{}
	for _, n := range s.Networks {
		names[n.Name] = true
	}
	for _, v := range s.Variants {
		for _, n := range v.Networks {
			if !names[n] || v.Views < 1 || v.Views > len(lattice) {
				t.Errorf("variant %+v", v)
			}
		}
	}
}

// TestFullLadderHasStepsWorthTaking checks that each variant costs between two and five times the one before, so that
// taking a step changes what a machine carries, and no step is so wide that most loads fall between two variants.
func TestFullLadderHasStepsWorthTaking(t *testing.T) {
	s := full(1)
	nets := map[string]*nn.Net{}
	for _, n := range s.Networks {
		net, err := newNetwork(n.Layers, 10, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		nets[n.Name] = net
	}
	before := 0
	for _, v := range s.Variants {
		var members []*nn.Net
		for _, n := range v.Networks {
			members = append(members, nets[n])
		}
		cost := newClassifier(members, v.Views).multiplications()
		t.Logf("%-8s %6.1f million products a picture", v.Name, float64(cost)/1e6)
		if before > 0 && (cost < 2*before || cost > 5*before) {
			t.Errorf("%s takes %d products, the variant before %d", v.Name, cost, before)
		}
		before = cost
	}
}

func TestLoadRefuses(t *testing.T) {
	good := Ladder{Task: task, Variants: []LadderVariant{{Name: "a", Accuracy: 0.5, Bytes: 3}}}
	for want, change := range map[string]func(*Ladder){
		"the task is":         func(l *Ladder) { l.Task = "cats" },
		"not a folder's name": func(l *Ladder) { l.Variants[0].Name = "../a" },
		"is not from 0 to 1":  func(l *Ladder) { l.Variants[0].Accuracy = 2 },
		"has 3 bytes":         func(l *Ladder) { l.Variants[0].Bytes = 4 },
		"no such file":        func(l *Ladder) { l.Variants[0].Name = "b" },
	} {
		dir := t.TempDir()
		l := good
		l.Variants = append([]LadderVariant(nil), good.Variants...)
		if err := os.MkdirAll(filepath.Dir(Model(dir, "a")), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(Model(dir, "a"), []byte("abc"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := l.write(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err != nil {
			t.Fatal(err)
		}
		change(&l)
		if err := l.write(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestWriteSamples(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "samples")
	for range 2 {
		if err := WriteSamples(dir, 13, 5); err != nil {
			t.Fatal(err)
		}
	}
	var meta map[string]any
	data, err := os.ReadFile(filepath.Join(dir, "samples.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"inputs": []any{
			map[string]any{
				"name": "image", "datatype": "UINT8", "shape": []any{1.0, float64(Size), float64(Size)},
				"file": "inputs.bin",
			},
		},
		"labels": map[string]any{"datatype": "INT64", "file": "labels.bin"}, "label_output": "label", "count": 5.0,
	}
	if !reflect.DeepEqual(meta, want) {
		t.Errorf("got %v", meta)
	}
	images, labels := Set(13, 5)
	in, _ := os.ReadFile(filepath.Join(dir, "inputs.bin"))
	out, _ := os.ReadFile(filepath.Join(dir, "labels.bin"))
	if !bytes.Equal(in, images) || len(out) != 5*8 {
		t.Fatalf("%d and %d bytes, or not the pictures of the set", len(in), len(out))
	}
	if v := int64(binary.LittleEndian.Uint64(out[8*4:])); v != labels[4] {
		t.Errorf("label 4 is %v, want %v", v, labels[4])
	}
	if err := WriteSamples(dir, 13, 0); err == nil {
		t.Error("wrote no samples")
	}
}
