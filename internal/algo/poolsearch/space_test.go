package poolsearch

import (
	"slices"
	"strings"
	"testing"
)

func TestSpaceRefuses(t *testing.T) {
	for want, points := range map[string][][]int{
		"point 1 has 1 coordinates and point 0 has 2": {{1, 2}, {3}},
		"point 1 has -3 as coordinate 0":              {{1, 2}, {-3, 1}},
		"points 0 and 2 are both [1 2]":               {{1, 2}, {2, 1}, {1, 2}},
	} {
		if _, err := NewSpace(points, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", points, err, want)
		}
	}
}

func TestPruning(t *testing.T) {
	points := [][]int{{2, 1}, {1, 1}, {2, 0}, {3, 0}, {2, 2}, {0, 200}, {2, 300}}
	s := space(t, points, nil)
	opens := func() (out []int) {
		for i := range points {
			if s.Open(i) {
				out = append(out, i)
			}
		}
		return out
	}
	s.PruneBelow(0)
	if got, want := opens(), []int{3, 4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("below %v pruned, open are %v, want %v", points[0], got, want)
	}
	s.PruneAbove(5)
	if got, want := opens(), []int{3, 4}; !slices.Equal(got, want) {
		t.Errorf("above %v pruned, open are %v, want %v", points[5], got, want)
	}
	s.Prune(5)
	if open, tried, pruned := s.Count(); open != 2 || tried != 0 || pruned != 5 {
		t.Errorf("%d open, %d evaluated, %d pruned, want 2, 0, 5", open, tried, pruned)
	}
	if i, ok := s.Index([]int{2, 300}); !ok || i != 6 {
		t.Errorf("(2, 300) is %d, %v", i, ok)
	}
	if _, ok := s.Index([]int{300, 2}); ok {
		t.Error("(300, 2) is found, and it is not there")
	}
}
