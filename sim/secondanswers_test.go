package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// A query that has an answer is served, whatever becomes of the second: batches that break, workers that are lost, time
// that runs out. It is given the answer by its deadline, and with the accuracy that answers of its confidence have.
func TestAnAnswerIsKept(t *testing.T) {
	counts := map[engine.Reason]int{}
	better, ofSeveral, several, graphs, below := 0, 0, 0, 0, 0
	for seed := uint64(1); seed <= 60; seed++ {
		rng := rand.New(rand.NewPCG(seed, 78))
		c := simtest.Random(rng)
		load := c.Load(rng, 400)
		for k, wants := range rand.New(rand.NewPCG(seed, 79)).Perm(len(load)) {
			if wants%4 == 0 {
				load[k].MinAccuracy = float64(wants) / float64(len(load))
			}
		}
		e, err := systems.System{Router: "priced", Batcher: "asrouted"}.Engine(c.Spec, c.Profile, c.Planner.Provides())
		if err != nil {
			t.Fatal(err)
		}
		machines, err := truth.NewTable(c.Spec, c.Measurements, truth.Lognormal, rng)
		if err != nil {
			t.Fatal(err)
		}
		var faults []Fault
		for k := range 3 {
			faults = append(faults, Fault{
				At: load[len(load)*(k+1)/5].At, Worker: serving.WorkerID(rng.IntN(len(c.Spec.Workers))),
			})
		}
		batches := map[serving.BatchID]engine.Decision{}
		type answer struct {
			at       serving.Time
			accuracy float64
		}
		first := map[serving.QueryID]answer{} // of the queries that have not ended
		_, err = Run(Config{
			Spec: c.Spec, Engine: e, Truth: machines, Initial: c.Plan, Source: workload.FromSlice(load), Faults: faults,
			Planner: c.Planner, PlanDelay: 50 * time.Millisecond, Check: true, Limit: serving.Time(10 * time.Minute),
			Breaks: func(serving.BatchID) bool { return rng.IntN(20) == 0 },
			Observe: func(now serving.Time, in []engine.Input, out []engine.Decision) {
				for k := range in {
					b := batches[in[k].Batch]
					if in[k].Kind != engine.BatchDone || in[k].Result != engine.OK || in[k].Confidence == nil {
						continue
					}
					stage, sure := &c.Spec.Stages[b.Stage], in[k].Confidence
					for i := range b.Tasks {
						x := answer{at: now}
						for _, s := range sure[:b.Tasks[i].Items] {
							x.accuracy += stage.Hinted(stage.Hint(b.Variant, s)).Accuracy / float64(b.Tasks[i].Items)
						}
						sure = sure[b.Tasks[i].Items:]
						wants := load[b.Tasks[i].Query-1].MinAccuracy > 0 // the answer may not count
						if _, again := first[b.Tasks[i].Query]; !again && !wants {
							first[b.Tasks[i].Query] = x
							if b.Tasks[i].Items > 1 {
								several++
							}
						}
					}
				}
				for k := range out {
					d := &out[k]
					if d.Kind == engine.StartBatch {
						b := *d
						b.Tasks = append([]engine.Task(nil), d.Tasks...)
						batches[d.Batch] = b
					}
					if d.Kind == engine.EndQuery && d.Outcome == serving.Served && len(c.Spec.Apps[d.App].Stages) == 1 {
						wants := load[d.Query-1].MinAccuracy
						if own := c.Spec.Variants[d.Variant].Accuracy; own < wants {
							below++
							if !d.Calibrated || d.Accuracy < wants {
								t.Errorf("seed %d: query %d wants %v, has %v of one with %v", seed, d.Query, wants,
									d.Accuracy, own)
							}
						}
					}
					x, has := first[d.Query]
					if d.Kind != engine.EndQuery || !has {
						continue
					}
					delete(first, d.Query)
					counts[d.Reason]++
					switch {
					case len(c.Spec.Apps[d.App].Stages) > 1: // another stage may fail
						if d.Outcome == serving.Served && d.Second {
							graphs++
						}
					case d.Outcome != serving.Served:
						t.Errorf("seed %d: query %d had an answer and %v: %v", seed, d.Query, d.Outcome, d.Reason)
					case now > max(d.Deadline, x.at+1):
						t.Errorf("seed %d: query %d had an answer at %v, was due at %v and given it at %v", seed,
							d.Query, x.at, d.Deadline, now)
					case d.Calibrated && d.Accuracy < x.accuracy-1e-9:
						t.Errorf("seed %d: query %d has accuracy %v, its first answer %v", seed, d.Query, d.Accuracy,
							x.accuracy)
					case d.Calibrated && d.Second && d.Accuracy > x.accuracy:
						better++
						if d.Brought > 1 {
							ofSeveral++
						}
					}
				}
			},
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if better < 100 || ofSeveral < 50 || graphs < 100 || below == 0 || counts[engine.SureEnough] < 100 ||
		counts[engine.OutOfTime] == 0 {
		t.Errorf("%d better answers, %d to several items, %d in graphs, %d below what is wanted, by reason %v: want "+
			"many of each", better, ofSeveral, graphs, below, counts)
	}
	t.Logf("%d better answers, %d of %d to several items, %d in graphs, %d of variants below what is "+
		"wanted, ends by reason %v", better, ofSeveral, several, graphs, below, counts)
}
