package engine_test

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/serving"
)

// Under a proposed objective a batch may hold more than what ends within it, so that a large query finds a place. Late
// queries make no such batches together: they would keep the machine from those that can be in time.
func TestLateBatchesUnderProposedObjectives(t *testing.T) {
	c := simtest.Uniform(1, 10*time.Millisecond, 10*time.Millisecond, 100*time.Millisecond, 64)
	c.Spec.Apps[0].Late, c.Spec.Apps[0].SLO.Proposed = serving.ServeLate, true
	c.Plan.Instances[0].Variants[0].Limit = 64
	d := newDriver(t, c, "priced", "asrouted")
	served, largest := 0, int32(0)
	d.see = func(x *engine.Decision) {
		switch x.Kind {
		case engine.StartBatch:
			if len(x.Tasks) > 1 && x.Expected > 100*time.Millisecond {
				t.Errorf("%d queries begin together and take %v", len(x.Tasks), x.Expected)
			}
			largest = max(largest, x.Items)
		case engine.EndQuery:
			if x.Outcome == serving.Served {
				served++
			}
		}
	}
	const n = 100
	d.ask = func(q *serving.Query) {
		if q.ID == n/2 {
			q.Items = 64
		}
	}
	for range n {
		d.arrive(1, 100*time.Millisecond)
	}
	d.ask = nil
	d.arrive(serving.Time(time.Minute), 100*time.Millisecond)
	if served < n || largest != 64 {
		t.Errorf("%d queries of %d are served, in batches of up to %d items", served, n, largest)
	}
}
