package monitor

import (
	"math"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

const (
	// KeptSizes is how many sizes of an app are kept, as many as Kairos §5.2 watches.
	KeptSizes = 10000
	// minWindow is the least number of sizes that a mix is counted over, once there are as many.
	minWindow = 156
	// criticalDeviation is the deviation, in units of sqrt(1/n+1/m), that two samples of one distribution exceed once
	// in 10,000 comparisons (Kolmogorov and Smirnov: sqrt(-ln(p/2)/2)). For discrete sizes it is rarer still.
	criticalDeviation = 2.2253
)

// sizes holds the last sizes of an app's queries. It stores nothing while all are 1.
type sizes struct {
	ring []int32 // nil while only size 1 was seen
	n    uint64  // how many were ever counted
}

// AddSize counts the items of a query of an app.
func (r *Rates) AddSize(app serving.AppID, items int32) {
	s := &r.sizes[app]
	if s.ring != nil || items != 1 {
		s.keep(items)
	}
	s.n++
}

func (s *sizes) keep(items int32) {
	if s.ring == nil {
		s.ring = make([]int32, KeptSizes)
		for k := range s.ring {
			s.ring[k] = 1
		}
	}
	s.ring[s.n%KeptSizes] = items
}

// SizesSeen returns how many sizes of an app were ever counted.
func (r *View) SizesSeen(app serving.AppID) uint64 { return r.sizes[app].n }

// newest appends to out n sizes: those before the last skip ones, oldest first.
func (s *sizes) newest(out []int32, skip, n int) []int32 {
	for k := s.n - uint64(skip+n); k < s.n-uint64(skip); k++ {
		out = append(out, s.ring[k%KeptSizes])
	}
	return out
}

// Mix returns the sizes of an app's last queries. Of the windows 10,000, 5,000, 2,500, ... it takes the longest whose
// older and newer half differ by no more than chance. So queries before a shift drop out soon, and a steady stream is
// counted in full (the idea of ADWIN, Bifet and Gavaldà 2007, over halves only; Kairos §5.2 always counts 10,000). The
// mix is a new one.
func (r *View) Mix(app serving.AppID) serving.Mix {
	s := &r.sizes[app]
	n := int(min(s.n, KeptSizes))
	if s.ring == nil {
		return serving.CountMix(map[int32]int{1: n})
	}
	for n >= 2*minWindow {
		older, newer := r.sort(s, 0, n/2, n/2), r.sort(s, 1, 0, n/2)
		if distance(older, newer) <= criticalDeviation*math.Sqrt(4/float64(n)) {
			break
		}
		n /= 2
	}
	counts := make(map[int32]int)
	for _, items := range r.sort(s, 0, 0, n) {
		counts[items]++
	}
	return serving.CountMix(counts)
}

func (r *View) sort(s *sizes, room, skip, n int) []int32 {
	r.sorted[room] = s.newest(r.sorted[room][:0], skip, n)
	slices.Sort(r.sorted[room])
	return r.sorted[room]
}

// distance is the largest difference between the cumulative shares of two sorted samples.
func distance(a, b []int32) float64 {
	largest := 0.0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		at := min(a[i], b[j])
		for i < len(a) && a[i] == at {
			i++
		}
		for j < len(b) && b[j] == at {
			j++
		}
		largest = max(largest, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	return largest
}

// Shift compares the sizes of an app's last n queries, or as many as are kept, with a mix. statistic is the largest
// difference between the shares of queries up to any size. Plans over mixed machines depend on those, because a type
// takes all queries up to some size. By chance alone it exceeds critical once in 10,000 comparisons.
func (r *View) Shift(app serving.AppID, mix *serving.Mix, n int) (statistic, critical float64) {
	s := &r.sizes[app]
	if n = min(n, int(min(s.n, KeptSizes))); n < 1 {
		return 0, 1
	}
	critical = 1 / float64(n)
	if mix.Count > 0 {
		critical += 1 / float64(mix.Count)
	}
	critical = criticalDeviation * math.Sqrt(critical)
	if s.ring == nil {
		items, share := mix.Class(0)
		if items != 1 {
			share = 0
		}
		return 1 - share, critical
	}
	sorted := r.sort(s, 0, 0, n)
	at, sum := 0, 0.0
	upTo := func(items int32) float64 {
		for at < len(sorted) && sorted[at] <= items {
			at++
		}
		return float64(at) / float64(n)
	}
	for k := range mix.Classes() {
		items, share := mix.Class(k)
		statistic = max(statistic, math.Abs(upTo(int32(items)-1)-sum)) // sizes that are not in the mix
		sum += share
		statistic = max(statistic, math.Abs(upTo(int32(items))-sum))
	}
	return max(statistic, 1-upTo(int32(mix.Largest()))), critical
}
