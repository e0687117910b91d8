package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Probe runs queries at a rate, in queries/s, with a seed, and tells how many there were and how many of them violated
// their objective. Where it gives up early it answers with all queries that there would have been: the share is then at
// least what it says. The same seed at two rates should be the same load, stretched: the search needs fewer runs then.
type Probe func(ctx context.Context, rate float64, seed uint64) (violations, queries int, err error)

// ThroughputSearch says what an allowable throughput is and how well it is to be known.
type ThroughputSearch struct {
	Limit float64 // share of the queries that may violate, in (0, 1)
	// Start is the rate to begin with, in queries/s: the nearer to the answer, the less is run.
	Start float64
	// MinRate is the rate below which a system counts as carrying nothing; 0 means a thousandth of Start.
	MinRate float64
	// Resolution ends the bisection, relative to the rate; 0 means 1 %.
	Resolution float64
	// Runs is the most at one rate; 0 means 8.
	Runs int
	// ErrorProbability is how likely a rate may be held for good, or bad, wrongly; 0 means 2.5 %. It is looked after every run,
	// so that it is more likely than that over all looks.
	ErrorProbability float64
	// Overdispersion is by how much more the violations of a run are expected to scatter than independent ones would, in their
	// variance, as far as too few runs tell: they come together. 0 means 20.
	Overdispersion float64
	// NoBounds leaves out what only the bounds need: Low and High are then only what was found on the way to the estimate.
	NoBounds bool
	// Seed is that of the first run at every rate; the others follow.
	Seed uint64
}

// Throughput is the highest rate at which violations stay within their limit.
type Throughput struct {
	Rate float64 // the estimate, in queries/s; 0 when not even the least rate is carried
	// Low is the highest rate below it that is known to be carried, High the lowest above it known not to be; 0 where
	// none is.
	Low, High float64
	Runs      int
	Queries   int64 // of all runs
}

// FindThroughput finds the allowable throughput: between rates that are carried and rates that are not it takes the middle,
// and at every rate it runs seeds until the share of violations is known to be on one side of the limit, or Runs are
// used up; then the mean decides, but the rate becomes no bound.
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

// Carries tells whether the rate o.Start is carried, and whether that is known or only what the mean of all runs says.
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
	lo, hi    level   // nearest rates that the mean found carried, and not; rate 0 while there is none
	low, high float64 // as Allowed's
	out       Throughput
}

// level is what was seen at a rate.
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
	if !(s.MinRate > 0 && s.Resolution > 0 && s.ErrorProbability > 0 && s.ErrorProbability < 0.5 && s.Overdispersion >= 1) || s.Runs < 1 {
		return fmt.Errorf("allowable: least %v, resolution %v, chance %v, burst %v or runs %d is out of range", s.MinRate,
			s.Resolution, s.ErrorProbability, s.Overdispersion, s.Runs)
	}
	return nil
}

// bracket goes up or down from Start, in steps that grow, until it has a rate that is carried and one that is not.
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

// narrow runs seeds at a rate and moves the bracket.
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

// carried tells whether a level is carried by the mean.
func (s *bisection) carried(l *level) bool {
	return float64(l.violations) <= s.Limit*float64(l.queries)
}

// run runs seeds at a rate; known tells whether the share of violations is known to be on its side of the limit.
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

// side tells on which side of the limit the share of violations is known to be: -1 below, 1 above, 0 not known.
// Violations of a run depend on each other, those of different runs do not, so runs are the sample of a t test. A few
// runs may agree by chance, often on no violation at all: their variance is weighed with the one expected at the limit,
// as if that came from one run more.
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
	margin := distuv.StudentsT{Sigma: 1, Nu: free}.Quantile(1-s.ErrorProbability) * math.Sqrt((prior*expected+squares)/free/n)
	switch {
	case mean+margin < s.Limit:
		return -1
	case mean-margin > s.Limit:
		return 1
	}
	return 0
}

// interpolate is where the share crosses the limit if its logarithm is straight over the bracket.
func (s *bisection) interpolate() float64 {
	of := func(l *level) float64 { return math.Log((float64(l.violations) + 0.5) / (float64(l.queries) + 1)) }
	a, b := of(&s.lo), of(&s.hi)
	at := 0.5
	if b > a {
		at = min(max((math.Log(s.Limit)-a)/(b-a), 0), 1)
	}
	return s.lo.rate + at*(s.hi.rate-s.lo.rate)
}

// confirm goes away from the estimate until there are rates known to be carried and not to be, where the bracket's are
// not.
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
