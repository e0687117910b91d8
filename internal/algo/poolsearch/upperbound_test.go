package poolsearch

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// Algorithm 1 by hand. In order of bounds:
//
//	(2,0) bound 100: 60, the best; prunes (0,1) and (1,1) by their bounds, (1,0) as its part
//	(1,3) bound  95: 50, not better; prunes (1,2) and (0,2) as its parts though their bounds are 90 and 84
//	(0,4) bound  85: 80, the best; prunes (1,4) by its bound of 80
//
// and (2,2) with bound 82 is the last that is asked for: 80 again, which is not better.
func TestAlgorithm1(t *testing.T) {
	points := [][]int{{1, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}, {1, 3}, {0, 4}, {2, 0}, {2, 2}, {1, 4}}
	bounds := []float64{70, 60, 40, 84, 90, 95, 85, 100, 82, 80}
	value := map[int]float64{7: 60, 5: 50, 6: 80, 8: 80}
	s := space(t, points, PruneSubsets)
	search, err := ByUpperBound(s, bounds)
	if err != nil {
		t.Fatal(err)
	}
	search.Run(func(i int) float64 {
		v, ok := value[i]
		if !ok {
			t.Errorf("asks for %v", points[i])
		}
		return v
	})
	want := []Trial{{7, 60, 3}, {5, 50, 2}, {6, 80, 1}, {8, 80, 0}}
	if !slices.Equal(s.Trials(), want) {
		t.Errorf("trials %v, want %v", s.Trials(), want)
	}
	if i, v, ok := s.Best(); i != 6 || v != 80 || !ok {
		t.Errorf("best is %d with %v, want (0,4) with 80", i, v)
	}
}

func TestBoundedRefuses(t *testing.T) {
	for want, bounds := range map[string][]float64{
		"1 bounds for 2 points":             {1},
		"the bound of point 1 is no number": {1, math.NaN()},
	} {
		if _, err := ByUpperBound(space(t, [][]int{{1}, {2}}, PruneSubsets), bounds); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", bounds, err, want)
		}
	}
}
