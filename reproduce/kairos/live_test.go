package kairos

import (
	"testing"

	"github.com/sluice-serving/sluice/reproduce"
)

// A probe on the data plane sees what one in the simulator sees: hardly anything late far below what a pool carries, and far too much
// far above it.
func TestLiveProbe(t *testing.T) {
	l := newLab(reproduce.Request{})
	s, err := l.service(at("rm2"))
	if err != nil {
		t.Fatal(err)
	}
	q, g := question{setup: at("rm2"), system: own, arrivals: whole, pool: pool{2, 0, 9, 0}}, grain{queries: 200}
	live, err := s.liveProbe(q, g, giveUp)
	if err != nil {
		t.Fatal(err)
	}
	simulated, err := s.probe(q, g, giveUp)
	if err != nil {
		t.Fatal(err)
	}
	few, n, err := live(t.Context(), 40, 1)
	if err != nil || n != g.queries {
		t.Fatalf("%d queries: %v", n, err)
	}
	many, _, err := live(t.Context(), 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	calm, _, err := simulated(t.Context(), 40, 1)
	if err != nil {
		t.Fatal(err)
	}
	busy, _, err := simulated(t.Context(), 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("of %d queries violate, live and simulated: %d and %d at 40/s, %d and %d at 1,000/s", n, few, calm, many, busy)
	limit := int(giveUp * float64(n))
	if many <= limit || busy <= limit {
		t.Errorf("at 1,000/s %d violate live and %d simulated, want more than %d", many, busy, limit)
	}
	if calm > 0 || few >= many {
		t.Errorf("at 40/s %d violate simulated and %d live, at 1,000/s %d live", calm, few, many)
	}
}
