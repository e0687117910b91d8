package kairos

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Queueing estimates the queries/s that a pool serves in time when queries arrive at random (ours). It is no bound: it
// takes from the linear program (Fluid) what queries lose by waiting.
//
// Some sizes can run on some types only. A pool therefore has levels: all sizes on all its machines, and for each
// auxiliary type the sizes beyond its region on the machines that serve them. Each level is a queue M/G/n. By Lee and
// Longton the mean wait of those that wait is that of M/M/n times (1+cv^2)/2, and the tail is taken as exponential:
//
//	P(W > t) = C(n, rho) exp(-n (1-rho) t / (mean (1+cv^2)/2))    C is Erlang's probability of waiting
//
// A query of a class is late when it waits longer than the objective leaves it. A level carries the rate at which so
// many of all queries are late as may be. The estimate is the least rate of a level. A pool with one base machine has
// the bound of the program at a base machine that is always busy. A queue in front of it has no end, and this is where
// both bounds mislead.
//
// A Queueing is not for concurrent use.
type Queueing struct {
	market *Market
	fluid  *Fluid
	late   float64
}

// NewQueueing prepares the estimate for a market, which it keeps. late is the share of the queries that may miss the
// objective; errors are those of NewFluid.
func NewQueueing(m *Market, late float64) (*Queueing, error) {
	f, err := NewFluid(m, late)
	if err != nil {
		return nil, err
	}
	return &Queueing{market: m, fluid: f, late: max(late, leastLate)}, nil
}

// leastLate is the least share of late queries that the estimate plans for. With none at all nothing may wait, and no
// random arrivals would be carried.
const leastLate = 1e-4

// Of returns the estimate for a pool in queries/s; 0 where the linear program's bound is 0.
func (q *Queueing) Of(p Pool) float64 {
	best := q.fluid.Solve(p)
	if best.Bound == 0 || math.IsInf(best.Bound, 1) {
		return best.Bound
	}
	// The level of all machines has the program's capacity.
	out := best.Bound * q.utilization(q.level(p, 0, best.Use))
	for t, n := range p {
		if r := q.market.Region(t); n > 0 && r > 0 && r < q.market.Mix.Classes() {
			if l := q.level(p, r, best.Use); l.machines > 0 && l.work > 0 {
				out = min(out, float64(l.machines)/l.work*q.utilization(l))
			}
		}
	}
	return out
}

// queueLevel is the classes from one on, and the machines that serve it.
type queueLevel struct {
	machines int
	share    float64 // of all queries
	work     float64 // seconds for each query of all
	squares  float64 // seconds squared for each query of all
	parts    []queuePart
}

// add adds queries of one size on one type: their share of all, their run time and the time that the objective gives.
func (l *queueLevel) add(share float64, took, within time.Duration) {
	l.share += share
	l.work += share * took.Seconds()
	l.squares += share * took.Seconds() * took.Seconds()
	l.parts = append(l.parts, queuePart{share, max((within - took).Seconds(), 0)})
}

// queuePart is the queries of a class on a type.
type queuePart struct {
	share float64 // of all queries
	slack float64 // seconds that the objective leaves to wait
}

// level returns the level of the classes from first on. use is the program's: the share of each class by type.
func (q *Queueing) level(p Pool, first int, use [][]float64) queueLevel {
	m := q.market
	var out queueLevel
	for t, n := range p {
		if m.Region(t) > first {
			out.machines += n
		}
	}
	for c := first; c < m.Mix.Classes(); c++ {
		_, share := m.Mix.Class(c)
		served := 0.0
		for t := range p {
			served += use[t][c]
		}
		if served == 0 {
			// The program leaves this class out as late, but it is served all the same.
			if t := q.firstServing(p, c); t >= 0 {
				out.add(share, m.Types[t].Latency[c], m.Within)
			}
			continue
		}
		for t, n := range p {
			if part := use[t][c] / served; n > 0 && part > 0 {
				out.add(share*part, m.Types[t].Latency[c], m.Within)
			}
		}
	}
	return out
}

// firstServing returns the first type of a pool that serves a class in time, -1 for none.
func (q *Queueing) firstServing(p Pool, class int) int {
	for t, n := range p {
		if n > 0 && q.market.Serves(t, class) {
			return t
		}
	}
	return -1
}

// halvingsOfUtilization is how often the interval of utilisations is halved: to a millionth.
const halvingsOfUtilization = 20

// utilization returns how busy the machines of a level may be, such that the share late of all queries waits too long.
func (q *Queueing) utilization(l queueLevel) float64 {
	if l.machines == 0 || l.share == 0 {
		return 1
	}
	mean := l.work / l.share
	scatter := l.squares / l.share / (mean * mean) / 2 // (1+cv^2)/2
	low, high := 0.0, 1.0
	for range halvingsOfUtilization {
		rho := (low + high) / 2
		leaves := float64(l.machines) * (1 - rho) / (mean * scatter)
		waits, late := erlangC(l.machines, rho), 0.0
		for _, x := range l.parts {
			late += x.share * waits * math.Exp(-leaves*x.slack)
		}
		if late <= q.late {
			low = rho
		} else {
			high = rho
		}
	}
	return low
}

// erlangC returns the probability that a query waits in M/M/n at a utilisation below 1.
func erlangC(n int, utilization float64) float64 {
	offered, blocked := utilization*float64(n), 1.0
	for k := 1; k <= n; k++ { // Erlang's B by its recursion
		blocked = offered * blocked / (float64(k) + offered*blocked)
	}
	return blocked / (1 - utilization*(1-blocked))
}

// Highest returns the n pools with the highest estimates, the highest first. ranked has pools by falling bound of the
// linear program (Rank). Since no estimate exceeds that bound, few of them are estimated.
func (q *Queueing) Highest(ranked []Ranked, n int) []Estimated {
	var out []Estimated
	for _, r := range ranked {
		if len(out) == n && r.Bound <= out[n-1].Rate {
			break
		}
		out = append(out, Estimated{r, q.Of(r.Pool)})
		slices.SortStableFunc(out, func(a, b Estimated) int { return cmp.Compare(rounded(b.Rate), rounded(a.Rate)) })
		out = out[:min(len(out), n)]
	}
	return out
}

// Estimated is a pool with its bound by the linear program and its estimate in queries/s.
type Estimated struct {
	Ranked
	Rate float64
}
