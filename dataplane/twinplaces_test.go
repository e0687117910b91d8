package dataplane_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/engine/journal"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim"
)

// places has one app after the other come, in the place of the one before, get a new version, and go.
type places struct {
	growths []sim.Growth
	spec    *serving.Spec // after done of them
	// m is what was measured of the cluster's variants, which are so many.
	m        serving.Measurements
	variants int
	done     int
	app      serving.AppID
}

// measured is a growth to a spec. Whatever has a variant's place is as fast as what was there before.
func (p *places) measured(t *testing.T, spec *serving.Spec) *engine.Growth {
	m := serving.Measurements{Latency: slices.Clone(p.m.Latency), Load: slices.Clone(p.m.Load)}
	for v := p.variants; v < len(spec.Variants); v++ {
		id := serving.VariantID(v)
		for d := range spec.DeviceTypes {
			for b := 1; b <= 16; b *= 2 {
				mean := time.Duration(1+b) * time.Millisecond
				m.Latency = append(m.Latency, simtest.Point(id, serving.DeviceTypeID(d), b, 1, mean, mean/20))
			}
			m.Load = append(m.Load, serving.LoadPoint{
				Variant: id, DeviceType: serving.DeviceTypeID(d), Load: 30 * time.Millisecond,
			})
		}
	}
	table, err := profile.NewTable(spec, m, profile.P95)
	if err != nil {
		t.Fatal(err)
	}
	return &engine.Growth{Spec: spec, Known: plan.Known{Profile: table, Measurements: m}}
}

// next fills in the growth that comes next, as the engine is now.
func (p *places) next(t *testing.T, e *engine.Engine, now serving.Time) {
	for p.done < len(p.growths) && now >= p.growths[p.done].At {
		p.spec = p.growths[p.done].Growth.Spec
		p.done++
	}
	if p.done == len(p.growths) {
		return
	}
	free := e.Free()
	app := serving.App{
		Name: fmt.Sprintf("f%d", p.done/3), Weight: 1, QueueLimit: 50,
		SLO: serving.SLO{Latency: 200 * time.Millisecond, Percentile: 99},
	}
	v := serving.Variant{Name: fmt.Sprintf("%s.v%d", app.Name, p.done%3), Accuracy: 1, MaxBatch: 8}
	spec := p.spec
	switch p.done % 3 {
	case 0:
		spec, p.app, _ = spec.WithApp(app, v, &free)
	case 1:
		spec, _ = spec.WithVersion(p.app, app, v, &free)
	case 2:
		spec = spec.WithClosed(p.app)
	}
	*p.growths[p.done].Growth = *p.measured(t, spec)
}

// Both drivers write equal journals where places in the tables are used again, and a fresh engine decides the same
// from the journal.
func TestTwinUsesPlacesAgain(t *testing.T) {
	const rounds, round = 3, 3 * time.Second
	for r, router := range systems.Routers() {
		for _, seed := range seedsOf(r) {
			if seed != twins()[r%len(twins())] && !testing.Short() {
				continue // the simulator's test has many more
			}
			w := newWorld(systems.System{Name: "twin", Router: router, Batcher: systems.BatchersFor(router)[0]}, seed)
			rng := rand.New(rand.NewPCG(seed, 8))
			w.faults, w.cancels, w.prices, w.stays = nil, nil, nil, nil
			p := &places{
				spec: w.cluster.Spec, m: w.cluster.Measurements, variants: len(w.cluster.Spec.Variants),
			}
			added := serving.AppID(len(w.cluster.Spec.Apps))
			w.load = nil
			for k := range rounds {
				at := serving.Time(k) * serving.Time(round)
				for _, after := range []time.Duration{200, 700, 1200} {
					w.growths = append(w.growths, sim.Growth{
						At: at.Add(after*time.Millisecond + 500), Growth: &engine.Growth{},
					})
				}
				for ms := range int(round / time.Millisecond) {
					a := workload.Arrival{
						At: at.Add(time.Duration(ms) * time.Millisecond), Items: 1, Variant: serving.None, Sample: -1,
						App: serving.AppID(rng.IntN(int(added))),
					}
					if ms > 210 && ms < 1220 && ms%2 == 0 {
						a.App = added
					}
					if rng.IntN(12) == 0 {
						w.load = append(w.load, a)
					}
				}
			}
			w.growths = append(w.growths, sim.Growth{At: serving.Time(rounds*round + 500), Growth: &engine.Growth{}})
			p.growths = w.growths
			w.grow = func(e *engine.Engine, now serving.Time) { p.next(t, e, now) }
			last := p.measured(t, w.cluster.Spec)
			var err error
			w.planner, err = systems.NewOpen(plan.Known{Profile: w.cluster.Profile}, w.cluster.Spreading)
			if err != nil {
				t.Fatal(err)
			}
			w.truthOf = func() profile.Profile {
				if p.done > 0 {
					last = w.growths[p.done-1].Growth
				}
				return last.Profile
			}
			a := w.simulated(t)
			w.grow, w.truthOf = nil, nil
			w.truth = w.growths[len(w.growths)-1].Growth.Profile.(*profile.Table)
			w.planner, err = systems.NewOpen(plan.Known{Profile: w.cluster.Profile}, w.cluster.Spreading)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("%s, seed %d", router, seed)
			sameJournals(t, name, a, w.live(t))
			end := w.growths[len(w.growths)-1].Growth.Spec
			if end.Apps[added].Generation == 0 || len(end.Apps) > int(added)+2 {
				t.Errorf("%s: %d apps in the end, the added one in generation %d", name, len(end.Apps),
					end.Apps[added].Generation)
			}
			replays(t, name, a)
		}
	}
}

// replays steps a fresh engine through a journal.
func replays(t *testing.T, name string, text []byte) {
	t.Helper()
	j, err := journal.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	e, err := systems.Recorded(j.Header())
	if err != nil {
		t.Fatal(err)
	}
	grown := 0
	for {
		st, err := j.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for k := range st.In {
			if st.In[k].Kind == engine.SpecGrown {
				grown++
			}
		}
		out := e.Step(st.At, st.In)
		for k := range out {
			if k >= len(st.Out) || out[k].String() != st.Out[k] {
				t.Fatalf("%s: at %v a replay decides %s", name, st.At, &out[k])
			}
		}
	}
	if err := e.Check(); err != nil || grown == 0 {
		t.Errorf("%s: %d growths: %v", name, grown, err)
	}
}
