package rules

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
	"github.com/sluice-serving/sluice/serving/profile"
)

// speeds are the times of a query by variant, in ms: batches bring nothing.
type speeds []float64

func (s speeds) Latency(v serving.VariantID, _ serving.DeviceTypeID, items, _ int) time.Duration {
	return time.Duration(float64(items) * s[v] * 1e6)
}
func (speeds) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 0 }
func (speeds) Learner() profile.Learner                                   { return nil }

// bench is so many machines, each with a small variant (10 ms, accuracy 0.8) and a large one (40 ms, 1). The small one
// is right in all but the fifth of its answers of which it is unsure.
func bench(machines int) (*fleet.Fleet, *monitor.Rates, *route.View) {
	better := []serving.VariantAccuracy{{Variant: 1, Accuracy: 1}}
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}},
		Apps: []serving.App{{
			Name: "a", SLO: serving.SLO{Latency: time.Second, Percentile: 99}, Weight: 1, Stages: []serving.StageID{0},
		}},
		Stages: []serving.Stage{{Name: "s", Variants: []serving.VariantID{0, 1}, Confidences: []serving.Confidence{{
			Bins: []serving.ConfidenceBin{
				{From: 0, Share: 0.2, Others: better}, {From: 0.5, Share: 0.8, Accuracy: 1, Others: better},
			},
		}}}},
		Variants: []serving.Variant{
			{Name: "small", Accuracy: 0.8, MaxBatch: 4}, {Name: "large", Accuracy: 1, MaxBatch: 4},
		},
	}
	f := fleet.New(spec, speeds{10, 40})
	for w := range machines {
		i := f.Launch(fleet.Placement{
			Key: fleet.Key{Worker: serving.WorkerID(w)}, Built: 1, Terms: fleet.Terms{Slots: 1},
			Variants: []fleet.Loaded{{Variant: 0, Limit: 4, Wanted: true}, {Variant: 1, Limit: 4, Wanted: true}},
		}, 0)
		f.Warm(i, 0)
		f.Warm(i, 1)
	}
	m, v := monitor.NewRates(1), &route.View{}
	v.Open(f, &m.View)
	return f, m, v
}

// come has queries arrive over the second before the present.
func come(m *monitor.Rates, now serving.Time, n int) {
	for k := range n {
		m.Add(now-serving.Time(time.Second)+serving.Time(k+1)*serving.Time(time.Second)/serving.Time(n), 0)
	}
}

// One machine of which nine tenths count. Alone the large variant carries 22.5 queries/s. A fifth of the queries needs
// it after the small one: 10 + 8 ms, 50 queries/s. The small one alone carries 90. Two machines of DiffServe, one for
// each: 22.5 second answers are enough for 112 queries/s, of which the other machine serves 90.
func TestTheGearFollowsTheLoad(t *testing.T) {
	for _, c := range []struct {
		router   *Cascade
		machines int
		rate     int
		accuracy float64
		light    int
	}{
		{NewCascadeServe(), 1, 20, 1, 0}, {NewCascadeServe(), 1, 45, 1, 0}, {NewCascadeServe(), 1, 80, 0.8, 0},
		{NewDiffServe(), 2, 80, 1, 1}, {NewDiffServe(), 2, 120, 0.8, 0}, {NewFixed(0.2), 1, 80, 1, 0},
	} {
		_, m, v := bench(c.machines)
		now := serving.Time(10 * time.Second)
		come(m, now, c.rate)
		v.Begin(now, 0, nil)
		c.router.Route(v)
		g := c.router.Of(0).gear
		if math.Abs(g.accuracy-c.accuracy) > 1e-9 || g.light != c.light {
			t.Errorf("%s at %d queries/s on %d machines: accuracy %v, %d machines for the light variant, want %v, %d",
				c.router.Name(), c.rate, c.machines, g.accuracy, g.light, c.accuracy, c.light)
		}
	}
}

// Fresh queries go to the small variant, unsure answers to the large one, and sure ones are given. DiffServe's machines
// keep to their variant.
func TestUnsureAnswersGoOn(t *testing.T) {
	for _, c := range []struct {
		router   *Cascade
		machines int
	}{{NewCascadeServe(), 2}, {NewDiffServe(), 2}} {
		f, m, v := bench(c.machines)
		now := serving.Time(10 * time.Second)
		come(m, now, 80)
		by := now.Add(time.Second)
		add := func(q serving.QueryID, h serving.Hint) {
			w := fleet.Work{Query: q, Items: 1, Pin: serving.None, Hint: h, Deadline: by, LatestEnd: by, Due: by}
			f.Wait(f.Add(&w))
		}
		add(1, 0)
		add(2, 0)
		add(3, 1)
		add(4, 2)
		v.Begin(now, 0, nil)
		c.router.Route(v)
		given := v.Settled()
		if len(given) != 1 || f.Task(given[0]).Query() != 4 {
			t.Errorf("%s: %d answers are given, want that of query 4", c.router.Name(), len(given))
		}
		for k, want := range []struct {
			variant serving.VariantID
			queries int
		}{{0, 2}, {1, 1}} {
			i := f.Ready(0)[k]
			if i.Choice() != want.variant || i.Queue().Len() != want.queries {
				t.Errorf("%s: machine %d has %d queries for variant %d, want %d for %d", c.router.Name(), k,
					i.Queue().Len(), i.Choice(), want.queries, want.variant)
			}
		}
	}
}
