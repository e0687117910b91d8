package kairos

import (
	"context"

	"github.com/sluice-serving/sluice/internal/algo/poolsearch"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
)

// thresholdRules are the rules with a size threshold that must be searched for every pool. Larger queries go to base
// machines (§7, DRS).
var thresholdRules = map[string]func(o *systems.Options, items int){
	"drs": func(o *systems.Options, items int) { o.Routing.Threshold = items },
}

// balancedThreshold returns the threshold at which base machines and the others are equally loaded. Hill climbing
// begins there. It is low enough that every other machine serves the queries below it in time.
func (s *deployment) balancedThreshold(p pool) int {
	m := s.market
	most, at := 0.0, 0
	for c := range m.Mix.Classes() {
		items, _ := m.Mix.Class(c)
		var base, others float64 // queries/s of all sizes if only these machines were a bottleneck
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
				return max(at, itemStep)
			default:
				others += float64(n) / small
			}
		}
		if v := min(base, others); v > most {
			most, at = v, items
		}
	}
	return max(at, itemStep)
}

// climb searches the threshold with the highest value by hill climbing from the balanced one. It calls value for every
// threshold on its way.
func (s *deployment) climb(tr trial, g precision, value func(tr trial) (float64, error)) (trial, error) {
	// Throughput is flat around its peak, so a coarse search uses steps of 40 items.
	unit, stride := itemStep, 4
	if g.rough {
		unit, stride = 4*itemStep, 1
	}
	c, err := poolsearch.NewHillClimb(1, maxItems/unit, min(max(s.balancedThreshold(tr.pool)/unit, 1), maxItems/unit),
		stride)
	if err != nil {
		return tr, err
	}
	for x, ok := c.Next(); ok; x, ok = c.Next() {
		tr.threshold = x * unit
		v, err := value(tr)
		if err != nil {
			return tr, err
		}
		c.Tell(v)
	}
	x, _, _ := c.Best()
	tr.threshold = x * unit
	return tr, nil
}

// tuneThreshold searches the threshold with the highest throughput coarsely, and measures the best one with precision
// g.
func (run *runner) tuneThreshold(ctx context.Context, s *deployment, tr trial, g precision,
	seed uint64) (experiment.Throughput, error) {
	tr, err := s.climb(tr, g, func(tr trial) (float64, error) {
		got, err := run.measure(ctx, tr, run.coarse, seed)
		return got.Rate, err
	})
	if err != nil {
		return experiment.Throughput{}, err
	}
	return run.measure(ctx, tr, g, seed)
}

// fewestViolations searches the threshold with the fewest violations in one run at a rate, in queries/s.
func (s *deployment) fewestViolations(ctx context.Context, tr trial, g precision, rate float64, seed uint64) (trial,
	error) {
	g.rough = true
	return s.climb(tr, g, func(tr trial) (float64, error) {
		p, err := s.probe(tr, g, 0)
		if err != nil {
			return 0, err
		}
		violations, _, err := p(ctx, rate, 1000*seed)
		return -float64(violations), err
	})
}
