package kairos

import (
	"context"

	"github.com/sluice-serving/sluice/algo/poolsearch"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/systems"
)

// tuned are the rules with a size that must be found for every pool: above it queries go to base machines (§7, DRS).
var tuned = map[string]func(o *systems.Options, items int){
	"drs": func(o *systems.Options, items int) { o.Routing.Threshold = items },
}

// balanced is the size above which queries must go to base machines for these and the others to be equally loaded:
// where the hill climbing begins. The others are sent nothing that one of their types does not serve in time.
func (s *service) balanced(p pool) int {
	m := s.market
	most, at := 0.0, 0
	for c := range m.Mix.Classes() {
		items, _ := m.Mix.Class(c)
		var base, others float64 // queries/s of all sizes if these machines were the only bottleneck
		for t, n := range p {
			small, large := 0.0, 0.0
			for k := range m.Mix.Classes() {
				_, share := m.Mix.Class(k)
				if k <= c {
					small += share * m.Types[t].Latency[k].Seconds()
				} else {
					large += share * m.Types[t].Latency[k].Seconds()
				}
			}
			switch {
			case t == 0:
				base = float64(n) / max(large, 1e-12)
			case n > 0 && m.Region(t) <= c:
				return max(at, step)
			default:
				others += float64(n) / small
			}
		}
		if v := min(base, others); v > most {
			most, at = v, items
		}
	}
	return max(at, step)
}

// climb finds a size by hill climbing from the balanced one; value is asked for every size on the way.
func (s *service) climb(q question, g grain, value func(q question) (float64, error)) (question, error) {
	// Throughput is flat around its peak: a coarse search does not look closer than 40 items.
	unit, stride := step, 4
	if g.rough {
		unit, stride = 4*step, 1
	}
	c, err := poolsearch.NewHillClimb(1, largest/unit, min(max(s.balanced(q.pool)/unit, 1), largest/unit), stride)
	if err != nil {
		return q, err
	}
	for x, ok := c.Next(); ok; x, ok = c.Next() {
		q.threshold = x * unit
		v, err := value(q)
		if err != nil {
			return q, err
		}
		c.Tell(v)
	}
	x, _, _ := c.Best()
	q.threshold = x * unit
	return q, nil
}

// tune finds the size with the highest throughput, coarsely, and measures that.
func (l *lab) tune(ctx context.Context, s *service, q question, g grain, seed uint64) (experiment.Allowed, error) {
	q, err := s.climb(q, g, func(q question) (float64, error) {
		got, err := l.measure(ctx, q, l.coarse, seed)
		return got.Rate, err
	})
	if err != nil {
		return experiment.Allowed{}, err
	}
	return l.measure(ctx, q, g, seed)
}

// fewest finds the size with the fewest violations in one run at a rate.
func (s *service) fewest(ctx context.Context, q question, g grain, rate float64, seed uint64) (question, error) {
	g.rough = true
	return s.climb(q, g, func(q question) (float64, error) {
		p, err := s.probe(q, g, 0)
		if err != nil {
			return 0, err
		}
		violations, _, err := p(ctx, rate, 1000*seed)
		return -float64(violations), err
	})
}
