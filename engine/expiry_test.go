package engine_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
)

// Nothing starts that its client no longer waits for, whatever the router and the batcher, although late queries are
// served. Nothing starts that has a deadline of its own and cannot meet it, where the app's objective is proposed.
// Queries whose clients wait for ever are all served.
func TestExpiredQueriesNeverStart(t *testing.T) {
	for _, router := range systems.Routers() {
		for _, batcher := range systems.BatchersFor(router) {
			seed := uint64(len(router)*100 + len(batcher))
			rng := rand.New(rand.NewPCG(seed, 33))
			c := simtest.Uniform(2, 2*time.Millisecond, time.Millisecond, 20*time.Millisecond, 4)
			c.Spec.Apps[0].Late, c.Spec.Apps[0].SLO.Proposed = serving.ServeLate, true
			d := newDriver(t, c, router, batcher)
			expires, ended := map[serving.QueryID]serving.Time{}, map[serving.QueryID]serving.Outcome{}
			asked, expired := 0, 0
			d.ask = func(q *serving.Query) {
				by := q.Arrived.Add(time.Duration(1 + rng.Int64N(int64(60*time.Millisecond))))
				switch asked++; {
				case asked > 500:
				case rng.IntN(3) == 0:
					q.Expires, q.Deadline, expires[q.ID] = by, min(q.Deadline, by), by
				case rng.IntN(2) == 0:
					q.Deadline = by.Add(5 * time.Millisecond)
					q.Own, expires[q.ID] = true, q.Deadline.Add(-2*time.Millisecond)
				}
			}
			d.see = func(x *engine.Decision) {
				switch x.Kind {
				case engine.StartBatch:
					for _, task := range x.Tasks {
						if by := expires[task.Query]; by > 0 && d.now > by {
							t.Errorf("%s + %s, seed %d: query %d starts at %v, its client waits until %v", router,
								batcher, seed, task.Query, d.now, by)
						}
					}
				case engine.EndQuery:
					ended[x.Query] = x.Outcome
				}
			}
			for range 500 { // twice of what the machines serve
				d.arrive(serving.Time(rng.Int64N(int64(800*time.Microsecond))), 20*time.Millisecond)
			}
			for range 3 { // time to serve what is late
				d.arrive(serving.Time(20*time.Second), 20*time.Millisecond)
			}
			if err := d.e.Check(); err != nil {
				t.Fatal(err)
			}
			for id := serving.QueryID(1); id <= 500; id++ {
				switch outcome, ok := ended[id]; {
				case !ok:
					t.Errorf("%s + %s, seed %d: query %d never ends, expires %v", router, batcher, seed, id,
						expires[id])
				case outcome == serving.Dropped && expires[id] > 0:
					expired++
				case outcome != serving.Served:
					t.Errorf("%s + %s, seed %d: query %d is %v", router, batcher, seed, id, outcome)
				}
			}
			if expired == 0 {
				t.Errorf("%s + %s, seed %d: no query expires: the load is too light", router, batcher, seed)
			}
		}
	}
}
