package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Probe runs a system at a rate, in queries/s, and returns how many queries there were and how many violated their
// objective. A probe that stops early returns the number of queries of the full run, so that the share of violations is
// a lower bound. The same seed at two rates should be the same load, stretched in time: the search then needs fewer
// runs.
type Probe func(ctx context.Context, rate float64, seed uint64) (violations, queries int, err error)

// ThroughputSearch says which rate counts as carried and how exactly the highest one is to be found.
type ThroughputSearch struct {
	Limit float64 // share of the queries that may violate their objective, in (0, 1)
	// Start is the first rate that is tried, in queries/s. The nearer it is to the answer, the fewer runs are needed.
	Start float64
	// MinRate is the lowest rate that is tried, in queries/s. A system that does not carry it counts as carrying
	// nothing. 0 means Start/1000.
	MinRate float64
	// Resolution is the relative width of the bracket at which the bisection ends. 0 means 0.01.
	Resolution float64
	// Runs is the most runs at one rate. 0 means 8.
	Runs int
	// ErrorProbability is the probability of judging a rate wrongly in one test. 0 means 0.025. A test is made after
	// every run, so over all tests of a rate the probability is higher.
	ErrorProbability float64
	// Overdispersion is the expected variance of the violations in one run, relative to that of independent violations.
	// Violations come in bursts. It counts while there are too few runs to estimate the variance. 0 means 20.
	Overdispersion float64
	// NoBounds saves the runs that only the bounds need. Low and High are then those that the bisection found on its
	// way.
	NoBounds bool
	// Seed is the seed of the first run at every rate. Further runs use Seed+1, Seed+2 and so on.
	Seed uint64
}

// Throughput is the allowable throughput of a system: the highest rate at which violations stay within their limit.
type Throughput struct {
	Rate float64 // the estimate, in queries/s; 0 when not even MinRate is carried
	// Low is the highest rate known to be carried, High the lowest rate known not to be, in queries/s. 0 where none is
	// known.
	Low, High float64
	Runs      int
	Queries   int64 // of all runs
}

// FindThroughput searches the allowable throughput by bisection on the logarithm of the rate. At each rate it runs
// seeds until a test tells on which side of the limit the share of violations lies. When o.Runs runs do not tell, the
// mean decides, and the rate does not count as a known bound. Errors are those of probe, of ctx and of options out of
// range.
func FindThroughput(ctx context.Context, probe Probe, o ThroughputSearch) (Throughput, error) {
	s := &bisection{ThroughputSearch: o, probe: probe}
	if err := s.setDefaults(); err != nil {
		return Throughput{}, err
	}
	if err := s.bracket(ctx); err != nil || s.lo.rate == 0 {
		s.out.High = s.high
		return s.out, err
	}
	for s.hi.rate-s.lo.rate > s.Resolution*s.hi.rate {
		if _, err := s.narrow(ctx, math.Sqrt(s.lo.rate*s.hi.rate)); err != nil {
			return s.out, err
		}
	}
	s.out.Rate = s.interpolate()
	var err error
	if !s.NoBounds {
		err = s.confirm(ctx)
	}
	s.out.Low, s.out.High = s.low, s.high
	return s.out, err
}

// Carries reports whether the rate o.Start is carried. known is false when no test could tell and the mean of all runs
// decided.
func Carries(ctx context.Context, probe Probe, o ThroughputSearch) (carried, known bool, err error) {
	s := &bisection{ThroughputSearch: o, probe: probe}
	if err := s.setDefaults(); err != nil {
		return false, false, err
	}
	l, known, err := s.run(ctx, o.Start)
	return err == nil && s.carried(&l), known, err
}

type bisection struct {
	ThroughputSearch
	probe     Probe
	lo, hi    level   // nearest rates found carried and not carried, by the mean; rate 0 while there is none
	low, high float64 // as Low and High of Throughput
	out       Throughput
}

// level is the result of the runs at one rate.
type level struct {
	rate                float64
	shares              []float64
	violations, queries int
}

func (s *bisection) setDefaults() error {
	if !(s.Limit > 0 && s.Limit < 1) {
		return fmt.Errorf("allowable: the limit is %v, want a share in (0, 1)", s.Limit)
	}
	if !(s.Start > 0) || math.IsInf(s.Start, 0) {
		return fmt.Errorf("allowable: the rate to begin with is %v, want a number above 0", s.Start)
	}
	or := func(v *float64, otherwise float64) {
		if *v == 0 {
			*v = otherwise
		}
	}
	or(&s.MinRate, s.Start/1000)
	or(&s.Resolution, 0.01)
	or(&s.ErrorProbability, 0.025)
	or(&s.Overdispersion, 20)
	if s.Runs == 0 {
		s.Runs = 8
	}
	if !(s.MinRate > 0 && s.Resolution > 0 && s.ErrorProbability > 0 && s.ErrorProbability < 0.5 &&
		s.Overdispersion >= 1) || s.Runs < 1 {
		return fmt.Errorf("allowable: least %v, resolution %v, chance %v, burst %v or runs %d is out of range",
			s.MinRate,
			s.Resolution, s.ErrorProbability, s.Overdispersion, s.Runs)
	}
	return nil
}

// bracket moves up or down from Start, in growing steps, until one rate is carried and one is not.
func (s *bisection) bracket(ctx context.Context) error {
	step := 1.15
	for rate := s.Start; ; step *= step {
		carried, err := s.narrow(ctx, rate)
		switch {
		case err != nil:
			return err
		case s.lo.rate > 0 && s.hi.rate > 0:
			return nil
		case carried:
			if rate *= step; math.IsInf(rate, 0) {
				return errors.New("allowable: every rate is carried: does anything arrive?")
			}
		case rate <= s.MinRate:
			return nil
		default:
			rate = max(rate/step, s.MinRate)
		}
	}
}

// narrow runs seeds at a rate and moves one end of the bracket to it.
func (s *bisection) narrow(ctx context.Context, rate float64) (carried bool, err error) {
	l, known, err := s.run(ctx, rate)
	if err != nil {
		return false, err
	}
	if s.carried(&l) {
		s.lo = l
		if known {
			s.low = rate
		}
		return true, nil
	}
	s.hi = l
	if known {
		s.high = rate
	}
	return false, nil
}

// carried reports whether the mean share of violations is within the limit.
func (s *bisection) carried(l *level) bool {
	return float64(l.violations) <= s.Limit*float64(l.queries)
}

// run runs seeds at a rate. known reports whether a test could tell on which side of the limit the share lies.
func (s *bisection) run(ctx context.Context, rate float64) (l level, known bool, err error) {
	l.rate = rate
	for n := range s.Runs {
		v, q, err := s.probe(ctx, rate, s.Seed+uint64(n))
		if err != nil {
			return l, false, err
		}
		if q < 1 || v < 0 || v > q {
			return l, false, fmt.Errorf("allowable: a run at %v queries/s counted %d violations of %d queries", rate, v,
				q)
		}
		l.violations, l.queries, l.shares = l.violations+v, l.queries+q, append(l.shares, float64(v)/float64(q))
		s.out.Runs++
		s.out.Queries += int64(q)
		if s.side(&l) != 0 {
			return l, true, nil
		}
	}
	return l, false, nil
}

// side tests on which side of the limit the share of violations lies: -1 below, 1 above, 0 when the runs do not tell.
//
// It is a t test over runs: violations within a run depend on each other, those of different runs do not. A few runs
// may agree by chance, often on no violation at all. So their variance is combined with the one that is expected at the
// limit, which counts as one more run.
func (s *bisection) side(l *level) int {
	const prior = 1
	n := float64(len(l.shares))
	mean, squares := 0.0, 0.0
	for _, x := range l.shares {
		mean += x / n
	}
	for _, x := range l.shares {
		squares += (x - mean) * (x - mean)
	}
	expected := s.Overdispersion * s.Limit * (1 - s.Limit) / (float64(l.queries) / n)
	free := prior + n - 1
	margin := distuv.StudentsT{Sigma: 1,
		Nu: free}.Quantile(1-s.ErrorProbability) * math.Sqrt((prior*expected+squares)/free/n)
	switch {
	case mean+margin < s.Limit:
		return -1
	case mean-margin > s.Limit:
		return 1
	}
	return 0
}

// interpolate returns the rate at which the share of violations meets the limit, if its logarithm is linear over the
// bracket.
func (s *bisection) interpolate() float64 {
	of := func(l *level) float64 { return math.Log((float64(l.violations) + 0.5) / (float64(l.queries) + 1)) }
	a, b := of(&s.lo), of(&s.hi)
	at := 0.5
	if b > a {
		at = min(max((math.Log(s.Limit)-a)/(b-a), 0), 1)
	}
	return s.lo.rate + at*(s.hi.rate-s.lo.rate)
}

// confirm moves away from both ends of the bracket, in growing steps, until one rate is known to be carried and one is
// known not to be.
func (s *bisection) confirm(ctx context.Context) error {
	for rate, step := s.lo.rate, s.Resolution; s.low == 0; step *= 1.5 {
		if rate /= 1 + step; rate < s.MinRate {
			break
		}
		l, known, err := s.run(ctx, rate)
		if err != nil {
			return err
		}
		if known && s.carried(&l) {
			s.low = rate
		}
	}
	for rate, step := s.hi.rate, s.Resolution; s.high == 0; step *= 1.5 {
		rate *= 1 + step
		if math.IsInf(rate, 0) {
			return errors.New("allowable: no rate is known to be too high: does the share of violations grow with it?")
		}
		l, known, err := s.run(ctx, rate)
		if err != nil {
			return err
		}
		if known && !s.carried(&l) {
			s.high = rate
		}
	}
	return nil
}
