// Package histogram counts values in bins of equal width over a sliding span of time, in memory that does not grow.
// Time is passed in.
package histogram

import "math"

// Sliding counts the values of the last slices of time. It forgets a whole slice at once. So it looks back by at least
// the length of all slices but one, and at most that of all. Times and widths are in any one unit, such as nanoseconds.
type Sliding struct {
	width, slice int64
	counts       []int32 // by bin, over all slices
	// by slice modulo their number, then bin; the last entry counts values beyond the bins
	slices          [][]int32
	newest          int64 // number of the newest slice; -1 before there is one
	inside, outside int64
	squares         int64 // sum of the squares of counts
}

// New returns an empty histogram of so many bins of the given width, from 0 up, over so many slices of time of the
// given length. All must be above 0.
func New(width int64, bins int, slice int64, slices int) *Sliding {
	s := &Sliding{width: width, slice: slice, counts: make([]int32, bins), slices: make([][]int32, slices), newest: -1}
	for k := range s.slices {
		s.slices[k] = make([]int32, bins+1) // the last counts values beyond the bins
	}
	return s
}

// Add counts a value >= 0 at a time. Times must not go back. It does not allocate.
func (s *Sliding) Add(at, value int64) {
	s.Advance(at)
	s.add(s.newest, min(value/s.width, int64(len(s.counts))), 1)
}

// add adds n to a bin of a slice.
func (s *Sliding) add(slice, bin, n int64) {
	s.sliceCounts(slice)[bin] += int32(n)
	if bin == int64(len(s.counts)) {
		s.outside += n
		return
	}
	before := int64(s.counts[bin])
	s.inside += n
	s.squares += (before+n)*(before+n) - before*before
	s.counts[bin] += int32(n)
}

// sliceCounts returns the counts of a slice. Its number may be negative, because encoded slices may be older than time
// 0.
func (s *Sliding) sliceCounts(slice int64) []int32 {
	n := int64(len(s.slices))
	return s.slices[((slice%n)+n)%n]
}

// Advance forgets the slices that are too old at a time. Add does so by itself.
func (s *Sliding) Advance(at int64) {
	n := at / s.slice
	if n <= s.newest {
		return
	}
	slices := int64(len(s.slices))
	for k := max(s.newest+1, n-slices+1); k <= n; k++ {
		part := s.sliceCounts(k)
		for bin, c := range part[:len(s.counts)] {
			if c == 0 {
				continue
			}
			before := int64(s.counts[bin])
			s.counts[bin] -= c
			s.squares -= before*before - int64(s.counts[bin])*int64(s.counts[bin])
			s.inside -= int64(c)
		}
		s.outside -= int64(part[len(s.counts)])
		clear(part)
	}
	s.newest = n
}

// Count returns how many values a bin holds, over all slices.
func (s *Sliding) Count(bin int) int64 { return int64(s.counts[bin]) }

// Inside returns how many values all bins hold together.
func (s *Sliding) Inside() int64 { return s.inside }

// Outside returns how many values lie beyond the bins.
func (s *Sliding) Outside() int64 { return s.outside }

// Quantile returns the first bin such that the bins up to it hold at least the share p of the values inside; -1 when
// nothing is inside. It takes O(bins).
func (s *Sliding) Quantile(p float64) int {
	if s.inside == 0 {
		return -1
	}
	want := max(int64(math.Ceil(p*float64(s.inside)-1e-9)), 1)
	sum := int64(0)
	for bin, c := range s.counts {
		if sum += int64(c); sum >= want {
			return bin
		}
	}
	return len(s.counts) - 1
}

// Spread returns the coefficient of variation of the bins' counts: large where values crowd into few bins, 0 where all
// bins hold the same, and 0 when nothing is inside.
func (s *Sliding) Spread() float64 {
	if s.inside == 0 {
		return 0
	}
	n := float64(s.inside)
	return math.Sqrt(max(float64(len(s.counts))*float64(s.squares)/(n*n)-1, 0))
}
