package engine_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/serving"
)

// Queries of one app and one priority start in the order in which they came where nothing else tells them apart: the
// machines are alike, and there is time for all. The slack that a server learns changes from query to query.
func TestQueriesStartInTheirOrder(t *testing.T) {
	for seed := range uint64(longtest.Of(60, 2000)) {
		rng := rand.New(rand.NewPCG(seed, 7))
		machines, most := 1+rng.IntN(3), 1+rng.IntN(6)
		base := time.Duration(rng.Int64N(int64(20*time.Millisecond))) + 1
		item := time.Duration(rng.Int64N(int64(5*time.Millisecond))) + 1
		slo := 80 * (base + time.Duration(most)*item)
		c := simtest.Uniform(machines, base, item, slo, most)
		if rng.IntN(3) == 0 {
			c = simtest.Staged([]serving.Stage{
				{Name: "first", Next: []serving.Edge{{To: 1, FanOut: 1}}}, {Name: "second"},
			}, machines, base, item, slo, most)
		}
		if rng.IntN(2) == 0 {
			c.Spec.Apps[0].Late = serving.ServeLate
		}
		d := newDriver(t, c, "priced", "asrouted")
		rank := map[serving.QueryID]int32{}
		levels := 1 + rng.Int32N(3)
		d.ask = func(q *serving.Query) {
			q.Priority = rng.Int32N(levels)
			q.Slack = 1 + time.Duration(rng.Int64N(int64(slo/8)))
			rank[q.ID] = q.Priority
		}
		last, started := map[int32]serving.QueryID{}, 0
		var at serving.Time
		atOnce := map[int32]serving.QueryID{} // the largest before this instant
		d.see = func(x *engine.Decision) {
			if x.Kind == engine.EndQuery && x.Outcome != serving.Served {
				t.Errorf("seed %d: query %d is %v: the load is too heavy", seed, x.Query, x.Outcome)
			}
			if x.Kind != engine.StartBatch || x.Stage > 0 { // to later stages they may come in another order
				return
			}
			if d.now > at {
				at = d.now
				for r, id := range last {
					atOnce[r] = id
				}
			}
			for _, task := range x.Tasks {
				started++
				r := rank[task.Query]
				if task.Query < atOnce[r] {
					t.Errorf("seed %d: query %d of priority %d starts at %v, %d did before", seed, task.Query, r, d.now,
						atOnce[r])
				}
				last[r] = max(last[r], task.Query)
			}
		}
		// A third of what the machines serve in full batches, by chance and in bursts.
		gap := 3 * float64(base+time.Duration(most)*item) / float64(machines*most)
		for range 200 {
			wait := gap * rng.ExpFloat64()
			if rng.IntN(3) == 0 {
				wait = 0
			}
			d.arrive(serving.Time(wait)+1, slo)
		}
		d.arrive(serving.Time(time.Hour), slo)
		if started < 200 {
			t.Errorf("seed %d: %d queries of 200 start", seed, started)
		}
	}
}
