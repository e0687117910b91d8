package monitor

import (
	"math"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

const (
	// Kept is how many sizes of an app are remembered: what Kairos §5.2 watches.
	Kept = 10000
	// shortest is the least window that a mix is counted over once there is as much.
	shortest = 156
	// tailed is the deviation, in units of sqrt(1/n+1/m), that two samples of one distribution exceed once in 10,000
	// looks (Kolmogorov and Smirnov: sqrt(-ln(p/2)/2)). Discrete sizes only make it rarer.
	tailed = 2.2253
)

// sizes holds the last sizes of an app's queries. Nothing is kept while all are 1.
type sizes struct {
	ring []int32 // nil while only size 1 was seen
	n    uint64  // that were ever counted
}

// Size counts the items of a query.
func (r *Rates) Size(app serving.AppID, items int32) {
	s := &r.sizes[app]
	if s.ring != nil || items != 1 {
		s.keep(items)
	}
	s.n++
}

func (s *sizes) keep(items int32) {
	if s.ring == nil {
		s.ring = make([]int32, Kept)
		for k := range s.ring {
			s.ring[k] = 1
		}
	}
	s.ring[s.n%Kept] = items
}

// Sized returns how many sizes of an app were ever counted.
func (r *View) Sized(app serving.AppID) uint64 { return r.sizes[app].n }

// newest appends to out the sizes of the queries before the last skip ones, n of them.
func (s *sizes) newest(out []int32, skip, n int) []int32 {
	for k := s.n - uint64(skip+n); k < s.n-uint64(skip); k++ {
		out = append(out, s.ring[k%Kept])
	}
	return out
}

// Mix returns the sizes of the app's last queries: of the longest of the windows 10,000, 5,000, 2,500, ... whose older
// and newer half do not differ by more than chance, so that what was before a shift is left out soon and what was
// before it in a steady stream is not (the idea of ADWIN, Bifet and Gavaldà 2007, over halves only).
func (r *View) Mix(app serving.AppID) serving.Mix {
	s := &r.sizes[app]
	n := int(min(s.n, Kept))
	if s.ring == nil {
		return serving.CountMix(map[int32]int{1: n})
	}
	for n >= 2*shortest {
		older, newer := r.sort(s, 0, n/2, n/2), r.sort(s, 1, 0, n/2)
		if distance(older, newer) <= tailed*math.Sqrt(4/float64(n)) {
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

// distance is the largest difference between the shares that two sorted samples have up to any size.
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

// Shift compares the sizes of the app's last queries, n of them or as many as are kept, with a mix. The statistic is
// the largest difference between the shares of queries up to any size, which is what plans over mixed machines turn on:
// a type takes all queries up to some size, whichever that is. Chance alone exceeds critical once in 10,000 looks.
func (r *View) Shift(app serving.AppID, mix *serving.Mix, n int) (statistic, critical float64) {
	s := &r.sizes[app]
	if n = min(n, int(min(s.n, Kept))); n < 1 {
		return 0, 1
	}
	critical = 1 / float64(n)
	if mix.Count > 0 {
		critical += 1 / float64(mix.Count)
	}
	critical = tailed * math.Sqrt(critical)
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
		statistic = max(statistic, math.Abs(upTo(int32(items)-1)-sum)) // sizes that the mix has not
		sum += share
		statistic = max(statistic, math.Abs(upTo(int32(items))-sum))
	}
	return max(statistic, 1-upTo(int32(mix.Largest()))), critical
}
