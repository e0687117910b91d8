package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// givenContent is content that a test sets, by query.
type givenContent []seen

type seen struct{ fan, balloon float64 }

func (c givenContent) Frame(q *serving.Query) truth.Frame { return c[q.ID-1] }

func (f seen) Fan(serving.StageID, int) float64 { return f.fan }
func (f seen) Balloon(serving.StageID) float64  { return f.balloon }

// A query brings its content to the next stage, and a batch takes longer by the mean over its items.
func TestContentOfQueries(t *testing.T) {
	c := simtest.Uniform(2, 10*time.Millisecond, time.Millisecond, time.Second, 8)
	spec := *c.Spec
	spec.Stages = []serving.Stage{
		{Name: "detect", Variants: []serving.VariantID{0}, Next: []serving.Edge{{To: 1, FanOut: 1}}}, {
			Name: "read", Joins: 1, Variants: []serving.VariantID{1},
		},
	}
	spec.Apps[0].Stages = []serving.StageID{0, 1}
	spec.Variants = append(spec.Variants[:1:1], spec.Variants[0])
	spec.Variants[1].Stage = 1
	m := c.Measurements
	for _, p := range c.Measurements.Latency {
		p.Variant = 1
		m.Latency = append(m.Latency, p)
	}
	p := *c.Plan
	p.Instances = append(p.Instances[:0:0], p.Instances...)
	p.Instances[1].Stage, p.Instances[1].Variants = 1, append(p.Instances[1].Variants[:0:0], p.Instances[1].Variants...)
	p.Instances[1].Variants[0].Variant = 1
	tr, err := truth.NewTable(&spec, m, truth.Exact, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	e, err := systems.System{
		Router: "shortestqueue", Batcher: "greedy",
	}.Engine(&spec, truthful{tr}, c.Planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	content := givenContent{{0, 1}, {1, 2}, {3, 4}, {12, 0.5}}
	var load []workload.Arrival
	for range content {
		load = append(load, workload.Arrival{Items: 1, Variant: serving.None}) // all at once: one batch
	}
	started := make(map[serving.BatchID]engine.Decision)
	got := make(map[serving.QueryID]int32)
	mixed := 0
	_, err = Run(Config{Spec: &spec, Engine: e, Truth: tr, Content: content, Initial: &p, Warm: true, Check: true,
		Source: workload.FromSlice(load),
		Observe: func(_ serving.Time, in []engine.Input, out []engine.Decision) {
			for i := range in {
				if in[i].Kind != engine.BatchDone {
					continue
				}
				d := started[in[i].Batch]
				factor := 0.0
				for _, x := range d.Tasks {
					factor += float64(x.Items) * content[x.Query-1].balloon / float64(d.Items)
				}
				want := time.Duration(factor * float64(truth.Sample(tr, d.Variant, 0, int(d.Items), 1)))
				if in[i].Took != want {
					t.Errorf("%v took %v, want %v", d.String(), in[i].Took, want)
				}
				if len(d.Tasks) > 1 {
					mixed++
				}
			}
			for i := range out {
				if d := out[i]; d.Kind == engine.StartBatch {
					d.Tasks = append([]engine.Task(nil), d.Tasks...)
					started[d.Batch] = d
					for _, x := range d.Tasks {
						if d.Stage == 1 {
							got[x.Query] += x.Items
						}
					}
				}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	for q := range content {
		if want := int32(content[q].fan); got[serving.QueryID(q+1)] != want {
			t.Errorf("query %d brings %d items to the second stage, want %d", q+1, got[serving.QueryID(q+1)], want)
		}
	}
	if mixed == 0 {
		t.Error("no batch held two queries")
	}
}

// truthful is a profile that equals the truth.
type truthful struct{ *truth.Table }

func (p truthful) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	return truth.Sample(p, v, d, items, concurrency)
}

func (truthful) Learner() profile.Learner { return nil }
