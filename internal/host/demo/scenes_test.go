package demo

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/internal/models/digits"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/tensor"
)

// answer is what a pipeline says of a scene: boxes round these centres, and a label for each.
func answer(centres [][2]float32, labels []int64) []tensor.Tensor {
	where := tensor.Tensor{Name: "where", DType: tensor.FP32, Shape: []int64{int64(len(centres)), 4}}
	for _, c := range centres {
		for _, v := range []float32{
			c[0] - digits.Box/2, c[1] - digits.Box/2, c[0] + digits.Box/2, c[1] + digits.Box/2,
		} {
			where.Data = binary.LittleEndian.AppendUint32(where.Data, math.Float32bits(v))
		}
	}
	label := tensor.Tensor{Name: "label", DType: tensor.Int64, Shape: []int64{int64(len(labels))}}
	for _, v := range labels {
		label.Data = binary.LittleEndian.AppendUint64(label.Data, uint64(v))
	}
	return []tensor.Tensor{label, where}
}

// An answer is correct when all digits of the scene are found at their places and read correctly, and nothing else is
// found.
func TestScenesAreJudged(t *testing.T) {
	d := &Scenes{
		scenes: []digits.Scene{{Digits: []digits.Digit{{Label: 3, X: 40, Y: 40}, {Label: 8, X: 120, Y: 60}}}},
	}
	for _, c := range []struct {
		name    string
		centres [][2]float32
		labels  []int64
		judged  loadgen.Judgement
	}{
		{
			"all, a few pixels off, in any order", [][2]float32{{124, 58}, {37, 44}}, []int64{8, 3},
			loadgen.Judgement{Right: 4, Items: 4, Whole: true},
		},
		{"one misread", [][2]float32{{124, 58}, {37, 44}}, []int64{8, 5}, loadgen.Judgement{Right: 2, Items: 4}},
		{"one missed", [][2]float32{{40, 40}}, []int64{3}, loadgen.Judgement{Right: 2, Items: 3}},
		{
			"one too many", [][2]float32{{40, 40}, {120, 60}, {170, 170}}, []int64{3, 8, 1},
			loadgen.Judgement{Right: 4, Items: 5},
		},
		{"nothing", nil, nil, loadgen.Judgement{Items: 2}},
	} {
		if got := d.judge(answer(c.centres, c.labels), 0); got != c.judged {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.judged)
		}
	}
	if want := (Tally{Present: 10, Found: 8, Correct: 6}); d.Tally() != want {
		t.Errorf("counted %+v, want %+v", d.Tally(), want)
	}
}

// Scenes get as many digits as documented, and their order depends on the seed alone.
func TestScenesGrowBusier(t *testing.T) {
	d := &Scenes{Setting: Setting{Seed: 1, Length: time.Minute}}
	mean := func(from, to time.Duration) float64 {
		sum, n := 0, 0
		for at := from; at < to; at += 50 * time.Millisecond {
			a, b := workload.Arrival{At: serving.Time(at)}, workload.Arrival{At: serving.Time(at)}
			d.choose(&a)
			d.choose(&b)
			if a.Sample != b.Sample || a.Sample < 0 || a.Sample >= sceneSamples*digits.MaxDigits {
				t.Fatalf("at %v samples %d and %d", at, a.Sample, b.Sample)
			}
			sum, n = sum+1+int(a.Sample)/sceneSamples, n+1
		}
		return float64(sum) / float64(n)
	}
	if first, last := mean(0, 5*time.Second), mean(55*time.Second, time.Minute); math.Abs(first-QuietScene) > 0.5 ||
		math.Abs(last-BusyScene) > 0.5 {
		t.Errorf("%.2f digits at first, %.2f in the end, want %d and %d", first, last, QuietScene, BusyScene)
	}
}

// The configuration that the demo writes is one that the server reads, up to the models, which are not there.
func TestScenesConfig(t *testing.T) {
	var b bytes.Buffer
	l := &digits.Ladder{
		Variants: []digits.Variant{
			{Name: "fine", Stage: digits.Detect, Accuracy: 0.93}, {Name: "careful", Stage: digits.Read, Accuracy: 0.97},
		},
	}
	if err := scenesConfig(&b, l); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if a := f.Apps[0]; len(a.Stages) != 5 || a.Stages[1].Function != "nms" || a.Stages[1].Next[0].Rows != "boxes" {
		t.Errorf("%+v", a.Stages)
	}
}
