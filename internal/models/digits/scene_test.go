package digits

import (
	"math"
	"slices"
	"testing"
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
