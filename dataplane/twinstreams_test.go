package dataplane_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/engine/journal"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
)

// The same where every stage is stateful and almost all queries are of three streams, so that most wait for their turn,
// in apps of several stages as well: both drivers and a replay keep the same order.
func TestTwinStreams(t *testing.T) {
	waited := 0
	for _, router := range []string{"weighted", "fcfs", "earliestfinish"} {
		for _, batcher := range []string{"greedy", "earlydrop"} {
			for _, seed := range twins() {
				w := newWorld(systems.System{Name: "twin", Router: router, Batcher: batcher}, seed)
				for s := range w.cluster.Spec.Stages {
					w.cluster.Spec.Stages[s].Stateful, w.cluster.Spec.Stages[s].Confidences = true, nil
				}
				for k := range w.load {
					if x := w.load[k].Stream; x > 0 {
						w.load[k].Stream = dataplane.StreamNumber(named(1 + x%3))
					}
				}
				a, b := w.simulated(t), w.live(t)
				sameJournals(t, fmt.Sprintf("%s+%s, seed %d", router, batcher, seed), a, b)
				r, err := journal.NewReader(bytes.NewReader(a))
				if err != nil {
					t.Fatal(err)
				}
				e := w.engine()
				_, err = journal.Replay(r, e, func(journal.Step) error {
					for s := range w.cluster.Spec.Stages {
						waited += e.Fleet().AwaitingTurn(serving.StageID(s)).Len()
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if waited < 1000 {
		t.Errorf("over all steps %d queries have waited for their turn: too few to tell", waited)
	}
}
