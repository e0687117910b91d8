package training

import (
	"math"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/internal/models/digits"
)

func TestOverlap(t *testing.T) {
	const box = digits.Box
	for _, x := range []struct {
		dx, dy float32
		want   float64
	}{{0, 0, 1}, {box, 0, 0}, {0, 2 * box, 0}, {box / 2, 0, 1. / 3}, {box / 2, box / 2, 1. / 7}} {
		got := overlap(detection{x: 10, y: 10}, detection{x: 10 + x.dx, y: 10 - x.dy})
		if math.Abs(got-x.want) > 1e-6 {
			t.Errorf("%v, %v: %v, want %v", x.dx, x.dy, got, x.want)
		}
	}
}

// The model of a detector gives the boxes of all places, and the scores that the forward pass gives, for batches as
// well.
func TestDetectorGraph(t *testing.T) {
	startRuntime(t)
	net, rounded := briefly(t, "d", "avg2 conv3x8 max2 conv3x8 max2 conv3x8", 2, 4)
	l := &digits.Ladder{Networks: []digits.Network{rounded}, Variants: []digits.Variant{
		{Name: "d", Stage: digits.Detect, Networks: []string{"d"}, Bias: 0.7},
	}}
	dir := t.TempDir()
	if err := l.Write(dir); err != nil {
		t.Fatal(err)
	}
	scenes := digits.Scenes(2, 3, func(i int) int { return 2 + i })
	var images []uint8
	for _, s := range scenes {
		images = append(images, s.Picture...)
	}
	boxes, scores := found(t, session(t, digits.Model(dir, "d"), "image", "boxes", "scores"), images)
	if len(boxes) != 3*576*4 || len(scores) != 3*576 {
		t.Fatalf("%d boxes, %d scores", len(boxes), len(scores))
	}
	squares, x, r := digits.Boxes(24, 24), make([]float32, digits.Pixels), net.Runner()
	for k, s := range scenes {
		for i, want := range squares {
			if got := boxes[k*len(squares)+i]; got != want {
				t.Fatalf("scene %d, box %d: %v, want %v", k, i, got, want)
			}
		}
		greys(s.Picture, x)
		places := r.Places(x)
		for i, p := range scores[k*576 : (k+1)*576] {
			chance := 1 / (1 + math.Exp(0.7-float64(places[576+i]-places[i])))
			if math.Abs(float64(p)-chance) > 1e-4 {
				t.Fatalf("scene %d, place %d: %v, want %v", k, i, p, chance)
			}
		}
	}
}

// found runs a detector on pictures.
func found(t testing.TB, s *ort.DynamicAdvancedSession, images []uint8) (boxes, scores []float32) {
	t.Helper()
	out := answers(t, s, images, 2, int64(len(images)/digits.Pixels), 1, digits.Size, digits.Size)
	return out[0].(*ort.Tensor[float32]).GetData(), out[1].(*ort.Tensor[float32]).GetData()
}
