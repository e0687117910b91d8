package scrooge

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/figuretest"
	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

// Every figure, with short sessions and few decisions, gives rows that are numbers and charts that can be drawn. It
// gives the same bytes twice. The rows of a figure depend neither on the other figures that run nor on parallelism.
func TestEveryFigure(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	solver := highstest.Solver(t)
	ask := func(parallel int, names ...string) (*reproduce.Outcome, error) {
		run, err := newRunner(reproduce.Request{Figures: names, Parallel: parallel, Solver: solver})
		if err != nil {
			return nil, err
		}
		run.sampled, run.span = longtest.Of(1, 2), longtest.Of[time.Duration](100, 200)*time.Second
		return study.Run(t.Context(), run)
	}
	all := figuretest.SameTwice(t, func(parallel int) (*reproduce.Outcome, error) { return ask(parallel) })
	for _, f := range study.Figures {
		if has := slices.ContainsFunc(all.Rows, func(r reproduce.Row) bool {
			return r.Figure == f.Name || r.Figure == f.Name+"a"
		}); has == f.OnRequest {
			t.Errorf("figure %s has rows: %v", f.Name, has)
		}
	}
	for _, r := range all.Rows {
		if math.IsNaN(r.Measured) || math.IsInf(r.Measured, 0) {
			t.Errorf("%+v", r)
		}
	}
	for _, c := range all.Charts {
		if err := c.PNG(&bytes.Buffer{}); err != nil {
			t.Errorf("chart %s: %v", c.Name, err)
		}
	}
	of := func(o *reproduce.Outcome, figure string) []reproduce.Row {
		return slices.DeleteFunc(slices.Clone(o.Rows), func(r reproduce.Row) bool { return r.Figure != figure })
	}
	some, err := ask(1, "14", "12")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"14", "12"} {
		if !reflect.DeepEqual(of(all, name), of(some, name)) {
			t.Errorf("figure %s comes out differently beside others", name)
		}
	}
}

// The paper's relations hold: relaxed objectives cost no more, and one batch at a time costs more, by about as much as
// published. The load of 12 clients needs about the 16 accelerators.
func TestAllocationsAgainstTheText(t *testing.T) {
	all, err := graphs()
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		g := &all[i]
		asked := g.stageRates(clients*(g.low+g.high)/2, usualLevel)
		last := math.Inf(1)
		for _, by := range relaxations {
			a, err := exact(t.Context(), testbedMarket.problem(g, scaleDuration(g.objective, by), asked))
			if err != nil {
				t.Fatal(err)
			}
			if a.Cost > last*(1+costTolerance) {
				t.Errorf("%s costs %.2f $/h at %v times its objective, %.2f at less", g.name, a.Cost, by, last)
			}
			last = a.Cost
		}
		p := testbedMarket.problem(g, g.objective, asked)
		a, err := exact(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if n := machinesUsed(p, a, -1, p100) + machinesUsed(p, a, -1, v100); n < 10 || n > 20 {
			t.Errorf("12 clients of %s take %.1f accelerators, the cluster has 16", g.name, n)
		}
	}
}

// A seed determines a session. Its frames are those of clients that are present. Content stays between the limits of
// edges.
func TestSessions(t *testing.T) {
	all, err := graphs()
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		for seed := uint64(1); seed <= 3; seed++ {
			s, err := newSession(&all[i], seed)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := newSession(&all[i], seed)
			if !reflect.DeepEqual(s.clients, again.clients) {
				t.Fatalf("%s, seed %d: two sessions differ", all[i].name, seed)
			}
			sent := 0.0
			for _, c := range s.clients {
				sent += c.Rate * c.Until.Sub(c.From).Seconds()
			}
			content, frames, last := s.content(seed), 0.0, serving.Time(0)
			for src := s.frames(); ; frames++ {
				a, more := src.Next()
				if !more {
					break
				}
				c := &s.clients[a.Stream-1]
				if a.At < last || a.At < c.From || a.At >= c.Until {
					t.Fatalf("%s, seed %d: a frame of client %d at %v, after one at %v", all[i].name, seed, a.Stream,
						a.At, last)
				}
				last = a.At
				f := content.Frame(&serving.Query{Stream: a.Stream, Arrived: a.At})
				for k, x := range all[i].stages {
					for e, edge := range x.next {
						if n := f.Fan(serving.StageID(k), e); n < math.Floor(edge.least) || n > math.Ceil(edge.most) {
							t.Fatalf("%s, seed %d: %v items to stage %d, between %v and %v", all[i].name, seed, n,
								edge.to, edge.least, edge.most)
						}
					}
					if b := f.Balloon(serving.StageID(k)); b < x.model.balloon[0] || b > x.model.balloon[1] {
						t.Fatalf("%s, seed %d: %s balloons by %v", all[i].name, seed, x.model.name, b)
					}
				}
			}
			if math.Abs(frames-sent) > clients {
				t.Errorf("%s, seed %d: %v frames, %.0f expected", all[i].name, seed, frames, sent)
			}
		}
	}
}
