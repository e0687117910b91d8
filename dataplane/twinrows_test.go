package dataplane_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/sim/truth"
	"github.com/sluice-serving/sluice/tensor"
)

// scenery is content that depends on the query alone: 0 to 17 things in every item, and batches that take up to three
// times as long.
type scenery struct{}

type sight serving.QueryID

func (scenery) Frame(q *serving.Query) truth.Frame { return sight(q.ID) }

func (s sight) Fan(stage serving.StageID, edge int) float64 {
	n := (uint64(s)*31 + uint64(stage)*7 + uint64(edge)) * 0x9e3779b97f4a7c15 >> 40
	if n%40 == 0 {
		return 17
	}
	return []float64{0, 0.5, 1, 1, 3}[n%5]
}

func (s sight) Balloon(stage serving.StageID) float64 {
	return float64(1 + (uint64(s)+uint64(stage))%3)
}

// shows gives every part the rows of its query, and returns how long the batch takes.
func (w *world) shows(b *dataplane.Batch, took time.Duration) time.Duration {
	stage := w.cluster.Spec.Variants[b.Variant].Stage
	balloon := 0.0
	for k := range b.Portions {
		p := &b.Portions[k]
		f := sight(p.Query)
		balloon += float64(p.Items) * f.Balloon(stage)
		p.Outputs = nil
		for e, edge := range w.cluster.Spec.Stages[stage].Next {
			n := truth.ItemsSent(f, stage, e, int32(p.Offset), int32(p.Items))
			p.Outputs = append(p.Outputs, tensor.Tensor{
				Name: edge.Rows, DType: tensor.Uint8, Shape: []int64{int64(n)}, Data: make([]byte, n),
			})
		}
	}
	return truth.Ballooned(took, balloon/float64(b.Items))
}

// The same where stages find 0 to 17 things in an item: the simulator's numbers of items equal those that the data
// plane counts in tensors, edge by edge and part by part, with joins and stages that are passed over.
func TestTwinRows(t *testing.T) {
	sent, several := 0, 0
	for _, router := range []string{"weighted", "shortestqueue", "earliestfinish", "priced"} {
		batchers := []string{"greedy", "earlydrop", "adaptive"}
		if router == "priced" {
			batchers = []string{"asrouted"} // answers of the stages are improved
		}
		for _, batcher := range batchers {
			for seed := uint64(1); seed <= 6; seed++ {
				if testing.Short() && seed > 2 {
					break
				}
				w := newWorld(systems.System{Name: "twin", Router: router, Batcher: batcher}, seed)
				w.content = scenery{}
				for s := range w.cluster.Spec.Stages {
					// Some are called for a query, whatever the stages before them find.
					w.cluster.Spec.Stages[s].EachQuery = (uint64(s)+seed)%3 == 0
					next := w.cluster.Spec.Stages[s].Next
					for e := range next {
						next[e].Rows, next[e].FanOut = fmt.Sprint("found", e), 2
					}
				}
				a, b := w.simulated(t), w.live(t)
				sameJournals(t, fmt.Sprintf("%s+%s, seed %d", router, batcher, seed), a, b)
				sent += bytes.Count(a, []byte(`"sent":`))
				several += bytes.Count(a, []byte(`"sent":[17`)) + bytes.Count(a, []byte(`"sent":[3`))
			}
		}
	}
	t.Logf("%d batches sent rows on", sent)
	fewest, fewestSeveral := 500, 50
	if testing.Short() {
		fewest, fewestSeveral = 100, 5
	}
	if sent < fewest || several < fewestSeveral {
		t.Errorf("only %d batches sent rows on, %d of them several for their first part: too few to tell", sent,
			several)
	}
}
