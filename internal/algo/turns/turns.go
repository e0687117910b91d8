// Package turns has several take turns in given shares.
package turns

import (
	"math"

	"github.com/sluice-serving/sluice/internal/algo/pq"
)

// Turns says whose turn is next, so that each gets its share, deterministically: after n turns one of share w has had
// n*w, to within less than one. It is Tijdeman's solution of the chairman assignment problem (R. Tijdeman, "The
// chairman assignment problem", Discrete Mathematics 32, 1980). With k takers and d = 1/(2k-2), the n-th turn goes to
// the one with the earliest deadline among those with n*w - received >= d. Over a window that does not begin with the
// shares the deviation is below two. For three or more unequal shares no sequence brings it below one in general.
type Turns struct {
	N        int64     // turns taken since the shares were set
	Share    []float64 // adds up to 1 after Reset
	Received []int64
	// Owed is what each gets beside its share; negative after it got too much; its absolute value is at most one.
	Owed     []float64
	delta    float64
	due      pq.Heap // who is eligible, by deadline, the number of a turn
	upcoming pq.Heap // the others, by the number of the turn at which they become eligible
}

// Begin sets the shares of n takers, to whom nothing is owed, and begins.
func (s *Turns) Begin(n int, share func(at int) float64) {
	s.Share, s.Owed = s.Share[:0], s.Owed[:0]
	for at := range n {
		s.Share, s.Owed = append(s.Share, share(at)), append(s.Owed, 0)
	}
	s.Reset()
}

// Reset normalises Share and restarts all counts. Without any share all are equal.
func (s *Turns) Reset() {
	s.N = 0
	s.due.Reset()
	s.upcoming.Reset()
	s.Received = s.Received[:0]
	total, k := 0.0, 0
	for _, w := range s.Share {
		total += w
		if w > 0 {
			k++
		}
	}
	s.delta = 0.5 // for one taker any value in [0, 1) will do
	if k > 1 {
		s.delta = 1 / float64(2*k-2)
	}
	for at := range s.Share {
		s.Received = append(s.Received, 0)
		if total > 0 {
			s.Share[at] /= total
		} else {
			s.Share[at] = 1 / float64(len(s.Share))
		}
	}
	for at, w := range s.Share {
		if w > 0 {
			s.upcoming.Set(at, s.eligible(at))
		}
	}
}

// eligible is the number of the first turn that may be at's again.
func (s *Turns) eligible(at int) int64 {
	return max(int64(math.Ceil((float64(s.Received[at])-s.Owed[at]+s.delta)/s.Share[at]-1e-9)), s.N+1)
}

// deadline is the number of the turn, in millionths, by which at must have had one.
func (s *Turns) deadline(at int) int64 {
	d := (float64(s.Received[at]) - s.Owed[at] + 1 - s.delta) / s.Share[at] * 1e6
	if d > math.MaxInt64/2 {
		return math.MaxInt64 / 2
	}
	return int64(d)
}

// Next returns whose turn is next; -1 without anyone.
func (s *Turns) Next() int {
	for {
		at, n, ok := s.upcoming.Min()
		if !ok || n > s.N+1 {
			break
		}
		s.upcoming.Remove(at)
		s.due.Set(at, s.deadline(at))
	}
	if at, _, ok := s.due.Min(); ok {
		return at
	}
	if at, _, ok := s.upcoming.Min(); ok {
		return at // rounding left nobody eligible: take the next one
	}
	return -1
}

// NextOf returns, of those that are accepted, the one with the earliest deadline; -1 without any. Those without a share
// come last.
func (s *Turns) NextOf(accept func(at int) bool) int {
	best, soonest := -1, int64(math.MaxInt64)
	for at, w := range s.Share {
		d := int64(math.MaxInt64 - 1) // without a share
		if w > 0 {
			d = s.deadline(at)
		}
		if d < soonest && accept(at) {
			best, soonest = at, d
		}
	}
	return best
}

// Take records that at has the next turn.
func (s *Turns) Take(at int) {
	s.N++
	s.Received[at]++
	if s.Share[at] == 0 {
		return
	}
	s.due.Remove(at)
	s.upcoming.Set(at, s.eligible(at))
}
