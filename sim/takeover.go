package sim

import (
	"cmp"
	"maps"
	"slices"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
)

// Takeover is a dispatcher that dies at At and whose successor goes on at Until, with the machines and what they have
// loaded. The queries that the dispatcher had fail. Those that come meanwhile wait for the successor.
type Takeover struct{ At, Until serving.Time }

// beginTakeovers has the engine not be called while nobody is there.
func (s *simulation) beginTakeovers() {
	if len(s.Takeovers) == 0 {
		return
	}
	s.open = make(map[serving.QueryID]bool)
	s.Pauses = slices.Clone(s.Pauses)
	for _, t := range s.Takeovers {
		s.Pauses = append(s.Pauses, Pause{t.At + 1, t.Until})
	}
	slices.SortStableFunc(s.Pauses, func(a, b Pause) int { return cmp.Compare(a.At, b.At) })
}

// die has the queries of a dispatcher that dies now end. Its machines finish what they run, for nobody.
func (s *simulation) die(now serving.Time) {
	for ; len(s.Takeovers) > 0 && s.Takeovers[0].At <= now; s.Takeovers = s.Takeovers[1:] {
		if s.failed == nil {
			s.failed = make(map[serving.QueryID]bool)
		}
		for _, q := range slices.Sorted(maps.Keys(s.open)) {
			s.failed[q] = true
			s.in = append(s.in, engine.NewQueryCancelled(q))
		}
	}
}
