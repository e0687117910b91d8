package serving

import (
	"fmt"
	"math"
	"slices"
)

// Mix is the distribution of query sizes. In the zero value every query brings one item.
type Mix struct {
	Sizes  []int32   // items, at least 1, ascending
	Shares []float64 // of the queries, by position in Sizes; each above 0, their sum 1
	// Count is how many queries were counted; 0 when the shares are given rather than counted.
	Count int
}

// Classes returns how many sizes the mix has, at least 1.
func (m *Mix) Classes() int { return max(len(m.Sizes), 1) }

// Class returns the size in items of a class and its share of the queries. i is in [0, Classes()); sizes ascend.
func (m *Mix) Class(i int) (items int, share float64) {
	if len(m.Sizes) == 0 {
		return 1, 1
	}
	return int(m.Sizes[i]), m.Shares[i]
}

// Largest returns the largest size, in items.
func (m *Mix) Largest() int {
	items, _ := m.Class(m.Classes() - 1)
	return items
}

// Mean returns the mean size, in items.
func (m *Mix) Mean() (mean float64) {
	for i := range m.Classes() {
		items, share := m.Class(i)
		mean += float64(items) * share
	}
	return mean
}

// CountMix returns the mix of counted queries, by size in items. Sizes with a count of 0 are left out. Without counts
// it returns the zero value.
func CountMix(counts map[int32]int) (m Mix) {
	for size, n := range counts {
		if n > 0 {
			m.Sizes, m.Count = append(m.Sizes, size), m.Count+n
		}
	}
	slices.Sort(m.Sizes)
	for _, size := range m.Sizes {
		m.Shares = append(m.Shares, float64(counts[size])/float64(m.Count))
	}
	return m
}

// Validate reports the first field of m that breaks the rules of its comment.
func (m *Mix) Validate() error {
	if len(m.Sizes) != len(m.Shares) {
		return fmt.Errorf("%d sizes and %d shares", len(m.Sizes), len(m.Shares))
	}
	sum := 0.0
	for i, size := range m.Sizes {
		if size < 1 || i > 0 && size <= m.Sizes[i-1] {
			return fmt.Errorf("sizes[%d] is %d, want sizes of at least 1 in ascending order", i, size)
		}
		if !(m.Shares[i] > 0 && m.Shares[i] <= 1+1e-9) {
			return fmt.Errorf("shares[%d] is %v, want a number in (0, 1]", i, m.Shares[i])
		}
		sum += m.Shares[i]
	}
	if len(m.Sizes) > 0 && math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("shares add up to %v, want 1", sum)
	}
	return nil
}
