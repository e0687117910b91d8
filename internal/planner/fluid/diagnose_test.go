package fluid

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/diagnosis"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

func (w *world) diagnose(t testing.TB, o Options) *diagnosis.Diagnosis {
	t.Helper()
	out, err := Diagnose(context.Background(), &Planner{Profile: w, Options: o}, plan.Request{
		Spec: &w.Spec, Rates: w.rates,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// mended is a world with a remedy, and the planner's options with it.
func (w *world) mended(m *diagnosis.Remedy, o Options) (*world, Options) {
	out := *w
	out.DeviceTypes, out.Apps = slices.Clone(w.DeviceTypes), slices.Clone(w.Apps)
	out.Workers, out.rates = slices.Clone(w.Workers), slices.Clone(w.rates)
	for _, a := range m.Add {
		for range a.Workers {
			out.Workers = append(out.Workers, serving.Worker{Name: "w", DeviceType: a.Device})
		}
	}
	for _, a := range m.Most {
		out.DeviceTypes[a.Device].MaxMachines = a.Workers
	}
	for _, x := range m.Memory {
		out.DeviceTypes[x.Device].MemoryBytes = x.To
	}
	for _, f := range m.Floors {
		out.Apps[f.App].Floor = f.To
	}
	for _, f := range m.Targets {
		out.Apps[f.App].AccuracyTarget = f.To
	}
	for _, x := range m.SLOs {
		out.Apps[x.App].SLO.Latency = x.To
	}
	for _, x := range m.Demand {
		out.rates[x.App] = x.To
	}
	if m.Budget > 0 {
		o.Budget = m.Budget
	}
	return &out, o
}

// lacks is what a plan leaves out: what it sheds, and by how much it misses targets.
func (w *world) lacks(t testing.TB, o Options) (sheds bool, missed float64) {
	t.Helper()
	p := &Planner{Profile: w, Options: o}
	out, err := p.Plan(context.Background(), plan.Request{Spec: &w.Spec, Rates: w.rates})
	if err != nil {
		return true, 0
	}
	m, err := p.read(&plan.Request{Spec: &w.Spec, Rates: w.rates})
	if err != nil {
		t.Fatal(err)
	}
	x := m.newProgram(m.whole(m.all()))
	x.solve(m.demand())
	for a, loss := range x.flows().loss {
		missed = max(missed, loss-m.apps[a].allowed)
	}
	return out.Shed != nil, missed
}

func kindOf(m *diagnosis.Remedy) string {
	switch {
	case m.Budget > 0:
		return "budget"
	case len(m.Add) > 0:
		return "add"
	case len(m.Most) > 0:
		return "most"
	case len(m.Memory) > 0:
		return "memory"
	case len(m.Floors) > 0:
		return "floors"
	case len(m.Targets) > 0:
		return "targets"
	case len(m.SLOs) > 0:
		return "objectives"
	}
	return "demand"
}

// Random worlds with graphs, budgets, limits of what can be rented and little memory: with each remedy the planner's
// own plan serves everything, and a proven number of machines less one cannot.
func TestRemediesAreEnough(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	seen, short := make(map[string]int), 0
	for n := range 90 {
		w := random(rng, 2, n%3 == 1)
		for a := range w.Apps {
			w.rates[a] *= 1 + 6*rng.Float64()
			if rng.IntN(4) == 0 {
				w.base[w.Stages[w.Apps[a].Stages[0]].Variants[0]] = 25 * ms // worth longer objectives
			}
			if rng.IntN(3) == 0 {
				w.Apps[a].Floor = 0.7
			}
		}
		if rng.IntN(2) == 0 {
			last := serving.AppID(len(w.Apps) - 1)
			w.stage(last)
			w.variant(2*ms, ms, 0.7, 10*mebi)
			w.variant(4*ms, 3*ms, 0.9, 20*mebi)
		}
		o := Options{Pooled: rng.IntN(2) == 0}
		if n%3 == 1 {
			if rng.IntN(2) == 0 {
				o.Budget = 0.2 + rng.Float64()
			} else {
				w.DeviceTypes[0].MaxMachines = 1
			}
		}
		d := w.diagnose(t, o)
		if sheds, _ := w.lacks(t, o); d.Carried && sheds {
			t.Errorf("world %d: carried is said of a demand that is shed", n)
		}
		if d.Carried {
			if d.Multiple < 1 || d.Remedies != nil {
				t.Errorf("world %d: %+v is carried", n, d)
			}
			continue
		}
		short++
		if d.Multiple > d.Bound || d.Bound > 1.01 && len(d.Limits) == 0 && len(d.Unserved) == 0 {
			t.Errorf("world %d: multiple %v, bound %v, limits %v", n, d.Multiple, d.Bound, d.Limits)
		}
		if len(d.Remedies) == 0 {
			t.Errorf("world %d has no mend: %+v", n, d)
		}
		for k := range d.Remedies {
			m := &d.Remedies[k]
			seen[kindOf(m)]++
			with, options := w.mended(m, o)
			if sheds, _ := with.lacks(t, options); sheds {
				t.Errorf("world %d, budget %v: something is shed with %+v", n, o.Budget, *m)
			}
			if m.Proven && len(m.Add) == 1 && len(m.Most) == 0 && m.Add[0].Workers > 1 {
				less := *m
				less.Add = []diagnosis.Addition{{Device: m.Add[0].Device, Workers: m.Add[0].Workers - 1}}
				with, _ := w.mended(&less, o)
				if d := with.diagnose(t, o); d.Carried {
					t.Errorf("world %d: %+v are enough, too", n, less.Add)
				}
			}
		}
	}
	t.Logf("%d worlds are short, mends %v", short, seen)
	for _, kind := range []string{"add", "budget", "most", "memory", "floors", "objectives", "demand"} {
		if seen[kind] == 0 {
			t.Errorf("no mend by %s in %d worlds", kind, short)
		}
	}
}

// A graph of two stages of 10 ms and 5 ms an item, two items of the second for each of the first, takes 20 ms of a
// machine for a query: of 120/s two machines carry 100/s, a third one is enough.
func TestDiagnosisOfAGraph(t *testing.T) {
	w := &world{}
	w.machines(2, 1, 0, 0)
	w.app(time.Second, 120)
	w.variant(0, 10*ms, 1, 0)
	w.stage(0)
	w.variant(0, 5*ms, 1, 0)
	d := w.diagnose(t, Options{})
	if d.Carried || math.Abs(d.Multiple-100.0/120) > 0.01 || d.Bound < d.Multiple || len(d.Bottlenecks) != 2 ||
		math.Abs(d.Bottlenecks[0].Without-200.0/120) > 0.01 {
		t.Errorf("%+v", d)
	}
	m := d.Remedies[0]
	if len(m.Add) != 1 || m.Add[0] != (diagnosis.Addition{Device: 0, Workers: 1}) || !m.Proven {
		t.Errorf("%+v", m)
	}
	if last := d.Remedies[len(d.Remedies)-1].Demand; len(last) != 1 || last[0].To < 98 || last[0].To > 100 {
		t.Errorf("%+v", d.Remedies)
	}
}

// Machines of 1 $/h and 100 queries/s for 250/s: a budget of 2 $/h is what is in the way, then the two that can be
// rented at most.
func TestDiagnosisOfARent(t *testing.T) {
	w := &world{}
	w.machines(5, 1, 1, 0)
	w.app(time.Second, 250)
	w.variant(0, 10*ms, 1, 0)
	d := w.diagnose(t, Options{Budget: 2})
	if d.Carried || math.Abs(d.Multiple-0.8) > 0.01 || len(d.Limits) != 1 ||
		d.Limits[0].Kind != diagnosis.BudgetLimit || math.Abs(d.Limits[0].Without-2) > 0.01 ||
		d.Remedies[0].Budget != 3 {
		t.Errorf("%+v", d)
	}
	w.DeviceTypes[0].MaxMachines = 2
	d = w.diagnose(t, Options{})
	if m := d.Remedies[0]; len(m.Add) != 0 || len(m.Most) != 1 || m.Most[0].Workers != 3 || m.CostPerHour != 1 ||
		d.Limits[0].Kind != diagnosis.MostLimit {
		t.Errorf("%+v", d)
	}
	// Neither alone is enough of 650/s: machines, what can be rented and the budget together are.
	w.rates[0] = 650
	d = w.diagnose(t, Options{Budget: 2})
	if m := d.Remedies[0]; m.Budget != 7 || m.Most[0].Workers != 7 || m.Add[0].Workers != 2 || len(d.Remedies) != 2 {
		t.Errorf("%+v", d.Remedies)
	}
}

// A target that the machines do not carry beside the demand is answered with machines, and with the target that they
// do carry.
func TestDiagnosisOfATarget(t *testing.T) {
	w := &world{}
	w.machines(1, 1, 0, 0)
	w.app(time.Second, 150).AccuracyTarget = 0.95
	w.variant(0, 10*ms, 1, 0)
	w.variant(0, 2*ms, 0.6, 0)
	d := w.diagnose(t, Options{})
	kinds := make(map[string]int)
	for k := range d.Remedies {
		kinds[kindOf(&d.Remedies[k])]++
		with, o := w.mended(&d.Remedies[k], Options{})
		if _, missed := with.lacks(t, o); missed > 1e-3 {
			t.Errorf("with %+v the target is missed by %v", d.Remedies[k], missed)
		}
	}
	if d.Carried || kinds["add"] != 1 || kinds["targets"] != 1 {
		t.Errorf("%+v", d)
	}
}
