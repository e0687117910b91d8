package host

import "testing"

// The estimate of the made share never falls, and approaches 1 when policies are made from the lowest rate up.
func TestMadeShare(t *testing.T) {
	var s madeShare
	last, made := 0.0, 0
	add := func(rate float64) {
		made++
		share := s.add(rate)
		if share < last || share > 1 {
			t.Errorf("%v after %v, for %v", share, last, rate)
		}
		last = share
	}
	var halve func(low, high float64, depth int)
	halve = func(low, high float64, depth int) {
		if depth == 0 {
			return
		}
		add((low + high) / 2)
		halve(low, (low+high)/2, depth-1)
		halve((low+high)/2, high, depth-1)
	}
	add(2)
	add(100)
	halve(2, 100, 5)
	if made != 33 || last < 0.9 {
		t.Errorf("%v after %d policies", last, made)
	}
}
