package sim

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// rows is a planner that gives every stage of an app a row of workers. It uses the first of them: as many as the rate
// needs where one carries up, and more where batches of the limit are believed to take longer than measured.
type rows struct {
	limit, workers int
	up             float64
	believed       profile.Profile // that up holds for
}

func (rows) Name() string            { return "rows" }
func (rows) Provides() plan.Sections { return plan.Shares | plan.Limits | plan.Budgets }

func (p rows) Plan(_ context.Context, r plan.Request) (*plan.Plan, error) {
	out := &plan.Plan{Planner: p.Name(), Demand: r.Rates}
	if r.Snapshot != nil {
		out.Snapshot = r.Snapshot.Seq
	}
	for s, asked := range capacity.StageDemands(r.Spec, r.Rates) {
		longer := 1.0
		if v := r.Spec.Stages[s].Variants[0]; r.Beliefs != nil {
			longer = r.Beliefs.Latency(v, 0, p.limit, 1).Seconds() / p.believed.Latency(v, 0, p.limit, 1).Seconds()
		}
		n := min(int(math.Ceil(asked.Rate*longer/p.up)), p.workers)
		for k := range n {
			out.Instances = append(out.Instances, plan.Instance{
				Worker: serving.WorkerID(s*p.workers + k), Stage: serving.StageID(s), Slots: 1, Share: 1 / float64(n),
				Variants: []plan.Variant{{Variant: r.Spec.Stages[s].Variants[0], Limit: p.limit}},
			})
		}
	}
	for s := range r.Spec.Stages {
		out.Budgets = append(out.Budgets,
			r.Spec.Apps[r.Spec.Stages[s].App].SLO.Latency/time.Duration(len(r.Spec.Stages)))
	}
	return out, out.Validate(r.Spec)
}

// With a turn-off delay, load that returns within it finds warm instances: fewer loads and fewer missed deadlines, for
// more money (Scrooge §3.6, Figure 14). A worker costs until its last instance has stopped, the delay included.
func TestTurnOffDelay(t *testing.T) {
	type outcome struct {
		loads, missed int
		dollars       float64
	}
	run := func(seed uint64, delay time.Duration) (out outcome) {
		spec, m := pipeline(18, 1)
		for k := range m.Load {
			m.Load[k].Load = 3 * time.Second
		}
		for k := range m.Latency { // 44 queries/s with batches of eight
			m.Latency[k].Mean *= 10
		}
		spec.Apps[0].SLO.Latency = 1500 * time.Millisecond
		p, err := profile.NewTable(spec, m, profile.Mean)
		if err != nil {
			t.Fatal(err)
		}
		planner := rows{limit: 8, up: 40, workers: 6, believed: p}
		system := systems.System{
			Router: "weighted", Batcher: "earlydrop", Scaler: "complexity", Options: systems.Options{
				Following: systems.Following{TurnOff: delay},
			},
		}
		e, err := system.Engine(spec, p, planner.Provides())
		if err != nil {
			t.Fatal(err)
		}
		tr, err := truth.NewTable(spec, m, truth.Exact, nil)
		if err != nil {
			t.Fatal(err)
		}
		load := stepped(rand.New(rand.NewPCG(seed, 9)), 30, 20, 200, 15, 30, 30, 200, 15, 30, 30, 200, 15, 30, 60)
		began, gone := make(map[serving.InstanceID]serving.Time), serving.Time(0)
		perWorker := make(map[serving.WorkerID][2]serving.Time) // instances there, since when
		on := make(map[serving.InstanceID]serving.WorkerID)
		rented := 0.0
		res, err := Run(Config{
			Spec: spec, Engine: e, Truth: tr, Initial: &plan.Plan{}, Source: workload.FromSlice(load), Planner: planner,
			PlanDelay: 100 * time.Millisecond, Check: true,
			Observe: func(now serving.Time, _ []engine.Input, decisions []engine.Decision) {
				gone = now
				for k := range decisions {
					switch d := &decisions[k]; d.Kind {
					case engine.LaunchInstance:
						out.loads++
						began[d.Instance], on[d.Instance] = now, d.Launch.Key.Worker
						if x := perWorker[d.Launch.Key.Worker]; x[0] == 0 {
							perWorker[d.Launch.Key.Worker] = [2]serving.Time{1, now}
						} else {
							perWorker[d.Launch.Key.Worker] = [2]serving.Time{x[0] + 1, x[1]}
						}
					case engine.StopInstance:
						w := on[d.Instance]
						x := perWorker[w]
						if x[0]--; x[0] == 0 {
							rented += (now - x[1]).Seconds()
						}
						perWorker[w] = x
					case engine.EndQuery:
						if d.Outcome != serving.Served || d.Late {
							out.missed++
						}
					}
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range perWorker {
			if x[0] > 0 {
				rented += (gone - x[1]).Seconds()
			}
		}
		out.dollars = res.Usage.Dollars
		if want := rented / 1000; out.dollars < want*0.999 || out.dollars > want*1.001 { // $3.6 an hour
			t.Errorf("seed %d, delay %v: %v $, machines were rented for %v", seed, delay, out.dollars, want)
		}
		return out
	}
	for seed := range longtest.Of(uint64(1), 3) {
		none, half, long := run(seed, 0), run(seed, 10*time.Second), run(seed, time.Minute)
		t.Logf("seed %d: without %+v, ten seconds %+v, a minute %+v", seed, none, half, long)
		if long.loads >= none.loads || long.missed >= none.missed || long.dollars <= none.dollars {
			t.Errorf("seed %d: without a delay %+v, with a minute %+v", seed, none, long)
		}
		if half.dollars < none.dollars || half.dollars > long.dollars {
			t.Errorf("seed %d: %v $ without a delay, %v with ten seconds, %v with a minute", seed, none.dollars,
				half.dollars, long.dollars)
		}
	}
}
