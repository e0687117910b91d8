package workload

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/serving"
)

// Point is a corner of a rate function.
type Point struct {
	At   float64 // seconds since the start of the run
	Rate float64 // queries per second from At on
}

// Rate is a rate of queries over time. Its integral and the inverse of that have closed forms. It is read-only once
// made.
type Rate struct {
	at     []float64 // start of each piece in seconds; at[0] is 0
	rate   []float64 // queries/s at the start of the piece
	slope  []float64 // queries/s per second
	before []float64 // expected queries before the piece
}

// Limits of rate functions. They keep the integral exact to a nanosecond.
const (
	MaxRate     = 1e9               // queries per second
	MaxSeconds  = 366 * 24 * 3600.0 // length of a workload
	MaxSegments = 1 << 20           // corners of a rate function
	maxTime     = MaxSeconds * 1e9  // ns
)

// NewRate returns the rate function with the given corners. The first must be at 0, and times must increase. With
// linear the rate is a straight line between corners, otherwise it is constant. After the last corner it is constant.
// Errors name the corner by index.
func NewRate(points []Point, linear bool) (*Rate, error) {
	if len(points) == 0 || len(points) > MaxSegments {
		return nil, fmt.Errorf("%d corners, want between 1 and %d", len(points), MaxSegments)
	}
	r := &Rate{}
	total := 0.0
	for i, p := range points {
		if !(p.Rate >= 0 && p.Rate <= MaxRate) {
			return nil, fmt.Errorf("[%d]: rate is %v, want a number in [0, %g]", i, p.Rate, float64(MaxRate))
		}
		if i == 0 && p.At != 0 {
			return nil, fmt.Errorf("[0]: starts at %v s, want 0 (give a rate of 0 for a silent start)", p.At)
		}
		if i > 0 && !(p.At > points[i-1].At) {
			return nil, fmt.Errorf("[%d]: starts at %v s, want a time after %v s", i, p.At, points[i-1].At)
		}
		if !(p.At <= MaxSeconds) {
			return nil, fmt.Errorf("[%d]: starts at %v s, want at most %g s", i, p.At, float64(MaxSeconds))
		}
		slope, length := 0.0, 0.0
		if i+1 < len(points) {
			length = points[i+1].At - p.At
			if linear && length > 0 {
				slope = (points[i+1].Rate - p.Rate) / length
			}
		}
		r.at = append(r.at, p.At)
		r.rate = append(r.rate, p.Rate)
		r.slope = append(r.slope, slope)
		r.before = append(r.before, total)
		total += length * (p.Rate + slope*length/2)
	}
	return r, nil
}

// Constant returns a rate that never changes, or an error for one outside [0, MaxRate].
func Constant(rate float64) (*Rate, error) {
	if !(rate >= 0 && rate <= MaxRate) {
		return nil, fmt.Errorf("the rate is %v queries/s, want 0 to %g", rate, float64(MaxRate))
	}
	return NewRate([]Point{{Rate: rate}}, false)
}

// At returns the rate at t, in queries per second.
func (r *Rate) At(t serving.Time) float64 {
	s := t.Seconds()
	i := r.piece(r.at, s)
	return r.rate[i] + r.slope[i]*(s-r.at[i])
}

// Expected returns the mean number of queries in [0, t).
func (r *Rate) Expected(t serving.Time) float64 {
	s := t.Seconds()
	i := r.piece(r.at, s)
	x := s - r.at[i]
	return r.before[i] + x*(r.rate[i]+r.slope[i]*x/2)
}

// Max returns the highest rate at a corner, in queries per second.
func (r *Rate) Max() float64 {
	m := 0.0
	for _, x := range r.rate {
		m = max(m, x)
	}
	return m
}

// piece returns the last index of starts whose value is at most x.
func (r *Rate) piece(starts []float64, x float64) int {
	lo, hi := 0, len(starts)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; starts[mid] <= x {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// inverse returns the time, in seconds, before which n queries are expected, and the piece that it lies in. The search
// begins at piece i. It returns +Inf when fewer than n queries are expected in all.
func (r *Rate) inverse(n float64, i int) (float64, int) {
	for i+1 < len(r.at) && r.before[i+1] <= n {
		i++
	}
	d := n - r.before[i]
	if d <= 0 {
		return r.at[i], i
	}
	// The root of slope/2 x^2 + rate x - d = 0, in the form without cancellation, which also holds for a slope of 0.
	root := r.rate[i]*r.rate[i] + 2*r.slope[i]*d
	if root < 0 { // rounding at the end of a falling piece
		root = 0
	}
	den := r.rate[i] + math.Sqrt(root)
	if den <= 0 {
		return math.Inf(1), i
	}
	t := r.at[i] + 2*d/den
	if i+1 < len(r.at) && t > r.at[i+1] {
		t = r.at[i+1]
	}
	return t, i
}
