package sim

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/scrooge"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// ballooning is a truth in which batches of one stage take longer for a while. from is called at every batch with the
// present time.
type ballooning struct {
	*truth.Table
	now    *serving.Time
	stage  serving.VariantID
	during [2]serving.Time
	by     float64
}

func (b ballooning) Service(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int,
	drawn float64) time.Duration {
	took := b.Table.Service(v, d, items, concurrency, drawn)
	if v == b.stage && *b.now >= b.during[0] && *b.now < b.during[1] {
		return time.Duration(float64(took) * b.by)
	}
	return took
}

// When batches take three times as long for half a minute, plans have as many more instances as soon as it shows, and
// fewer when it is over. Queries are answered in time meanwhile. When they take thirty times as long, no query is
// believed to be in time and nothing runs. After a while the stage is tried again, which shows when it is over.
func TestPlansFollowBallooning(t *testing.T) {
	for _, by := range []float64{3, 30} {
		spec, m := pipeline(30, 1)
		for k := range m.Latency {
			m.Latency[k].Mean *= 4
		}
		spec.Apps[0].SLO.Latency = 1500 * time.Millisecond
		p, err := profile.NewTable(spec, m, profile.Mean)
		if err != nil {
			t.Fatal(err)
		}
		planner := rows{limit: 8, up: 80, workers: 10, believed: p}
		system := systems.System{Router: "weighted", Batcher: "earlydrop", Scaler: "complexity"}
		e, tr, first := begun(t, spec, m, p, system, planner, 120)
		now, from, until := serving.Time(0), serving.Time(20*time.Second), serving.Time(50*time.Second)
		var began, ended serving.Time // requests with ballooning, and without again
		missed := make([]int, 3)      // before, during and after, with a while left out after each change
		all := make([]int, 3)
		most := 0
		_, err = Run(Config{
			Spec: spec, Engine: e, Truth: ballooning{tr, &now, 1, [2]serving.Time{from, until}, by}, Initial: first,
			Warm: true, Planner: planner, PlanDelay: 100 * time.Millisecond, Check: true,
			Source: workload.FromSlice(stepped(rand.New(rand.NewPCG(uint64(by), 4)), 100, 100)),
			Observe: func(at serving.Time, _ []engine.Input, out []engine.Decision) {
				now = at
				most = max(most, len(e.Fleet().Ready(1)))
				for k := range out {
					switch d := &out[k]; d.Kind {
					case engine.RequestPlan:
						if d.Request.Ballooning != nil && began == 0 {
							began = at
							b := d.Request.Ballooning
							if math.Abs(b[1]/by-1) > 0.1 || b[0] != 1 || b[2] != 1 {
								t.Errorf("by %v: asked with ballooning %v", by, d.Request.Ballooning)
							}
						} else if d.Request.Ballooning == nil && at >= until && ended == 0 {
							ended = at
						}
					case engine.EndQuery:
						for k, span := range [][2]serving.Time{
							{0, from - 2e9}, {from + 8e9, until - 2e9}, {until + 25e9, serving.Never},
						} {
							if d.Arrived >= span[0] && d.Arrived < span[1] {
								all[k]++
								if d.Outcome != serving.Served || d.Late {
									missed[k]++
								}
							}
						}
					}
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("by %v: asked with ballooning at %v, without at %v, at most %d instances, missed %v of %v", by, began,
			ended, most, missed, all)
		// a batch shows its run time when it ends, and three of them exclude chance
		seen := from.Add(time.Second + 4*time.Duration(by*float64(p.Latency(1, 0, 4, 1))))
		if began < from || began > seen || ended < until || ended > until.Add(20*time.Second) {
			t.Errorf("by %v from %v to %v: asked with ballooning at %v, without at %v", by, from, until, began, ended)
		}
		if 50*missed[0] > all[0] || 50*missed[2] > all[2] || by == 3 && 50*missed[1] > all[1] {
			t.Errorf("by %v: missed %v of %v", by, missed, all)
		}
	}
}

// busier is content that grows for a while: frames have one thing in them, or eight.
type busier struct{ from, until serving.Time }

func (b busier) Frame(q *serving.Query) truth.Frame {
	if q.Arrived >= b.from && q.Arrived < b.until {
		return seen{8, 1}
	}
	return seen{1, 1}
}

// A stage that suddenly gets eight times as many items has instances for them within a second and a load, and fewer
// some time after that is over. With a scaler that does not follow content it never has. Only the first edge changes:
// the second stage passes each thing on as one.
func TestPlansFollowFanOut(t *testing.T) {
	missed := make(map[string]int)
	for _, scaler := range []string{"complexity", "replan"} {
		spec, m := pipeline(30, 1)
		p, err := profile.NewTable(spec, m, profile.Mean)
		if err != nil {
			t.Fatal(err)
		}
		planner := rows{limit: 16, up: 250, workers: 10, believed: p}
		e, tr, first := begun(t, spec, m, p, systems.System{
			Router: "weighted", Batcher: "earlydrop", Scaler: scaler,
		}, planner, 120)
		from, until := serving.Time(20*time.Second), serving.Time(50*time.Second)
		var seen serving.Time
		soon, last := 0, 0 // instances of the second stage three seconds after the change, and in the end
		content := []float64{}
		_, err = Run(Config{
			Spec: spec, Engine: e, Truth: tr, Content: once{busier{from, until}}, Initial: first, Warm: true,
			Planner: planner, PlanDelay: 100 * time.Millisecond, Check: true,
			Source: workload.FromSlice(stepped(rand.New(rand.NewPCG(5, 4)), 100, 100)),
			Observe: func(at serving.Time, _ []engine.Input, out []engine.Decision) {
				if last = len(e.Fleet().Ready(1)); at < from+3e9 {
					soon = last
				}
				for k := range out {
					switch d := &out[k]; d.Kind {
					case engine.RequestPlan:
						if d.Request.FanOuts != nil && seen == 0 {
							seen = at
						}
						if d.Request.FanOuts != nil {
							content = append(content, d.Request.FanOuts[0][0])
							if d.Request.FanOuts[1][0] != 1 {
								t.Errorf("%v: the second edge sends %v", at, d.Request.FanOuts[1])
							}
						}
					case engine.EndQuery:
						if d.Arrived >= from+3e9 && d.Arrived < until-2e9 && (d.Outcome != serving.Served || d.Late) {
							missed[scaler]++
						}
					}
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: seen at %v, fan-outs %.1f, %d instances soon, %d in the end, missed %d", scaler, seen, content,
			soon, last, missed[scaler])
		if scaler == "complexity" && (seen < from || seen > from.Add(time.Second) || soon < 3 || last != 1) {
			t.Errorf("from %v on: seen at %v, %d instances soon after, %d in the end", from, seen, soon, last)
		}
	}
	if missed["complexity"] > 20 || missed["replan"] < 500 {
		t.Errorf("missed %v", missed)
	}
}

// once is content that the first stage finds and later stages pass on.
type once struct{ truth.Content }

func (o once) Frame(q *serving.Query) truth.Frame { return atFirst{o.Content.Frame(q)} }

type atFirst struct{ truth.Frame }

func (f atFirst) Fan(s serving.StageID, k int) float64 {
	if s > 0 {
		return 1
	}
	return f.Frame.Fan(s, k)
}

// waves is content with eight times as many items in every second span.
type waves struct{ span time.Duration }

func (w waves) Frame(q *serving.Query) truth.Frame {
	if q.Arrived/serving.Time(w.span)%2 == 1 {
		return seen{8, 1}
	}
	return seen{1, 1}
}

// Scrooge's planner serves waves of content with the scaler that follows content, and not without. With a turn-off
// delay that spans the time between waves it loads less often and misses fewer deadlines, for more money (§3.6).
func TestScroogeFollowsWaves(t *testing.T) {
	type outcome struct {
		loads, resumed, missed, all int
		dollars                     float64
	}
	run := func(scaler string, delay time.Duration) (out outcome) {
		spec, m := pipeline(30, 1)
		p, err := profile.NewTable(spec, m, profile.Mean)
		if err != nil {
			t.Fatal(err)
		}
		planner := &scrooge.Planner{Profile: p}
		system := systems.System{
			Router: "weighted", Batcher: "earlydrop", Scaler: scaler, Options: systems.Options{
				Following: systems.Following{TurnOff: delay},
			},
		}
		e, tr, first := begun(t, spec, m, p, system, planner, 120)
		res, err := Run(Config{
			Spec: spec, Engine: e, Truth: tr, Content: once{waves{40 * time.Second}}, Initial: first, Warm: true,
			Planner: planner, PlanDelay: 100 * time.Millisecond, Check: true,
			Source: workload.FromSlice(stepped(rand.New(rand.NewPCG(5, 4)), 100, 160)),
			Observe: func(_ serving.Time, _ []engine.Input, decisions []engine.Decision) {
				for k := range decisions {
					switch d := &decisions[k]; d.Kind {
					case engine.LaunchInstance:
						out.loads++
					case engine.ResumeInstance:
						out.resumed++
					case engine.EndQuery:
						out.all++
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
		out.dollars = res.Usage.Dollars
		return out
	}
	blind, following, kept := run("replan", 0), run("complexity", 0), run("complexity", 30*time.Second)
	t.Logf("replan %+v, complexity %+v, with 30 s %+v", blind, following, kept)
	if 5*blind.missed < blind.all || 50*following.missed > following.all {
		t.Errorf("missed %d without following and %d with, of %d", blind.missed, following.missed, following.all)
	}
	if following.resumed > 0 || kept.resumed == 0 || kept.loads >= following.loads || kept.missed >= following.missed ||
		kept.dollars <= following.dollars {
		t.Errorf("without a delay %+v, with one %+v", following, kept)
	}
}

// begun is the start of a run: the engine of a system, machines exactly as measured, and a plan for a rate in
// queries/s.
func begun(t *testing.T, spec *serving.Spec, m serving.Measurements, p profile.Profile, system systems.System,
	planner plan.Planner, rate float64) (*engine.Engine, *truth.Table, *plan.Plan) {
	t.Helper()
	e, err := system.Engine(spec, p, planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := truth.NewTable(spec, m, truth.Exact, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := planner.Plan(context.Background(), plan.Request{Spec: spec, Rates: []float64{rate}})
	if err != nil {
		t.Fatal(err)
	}
	return e, tr, first
}
