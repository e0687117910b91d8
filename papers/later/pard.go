package later

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// The claims of the abstract of PARD (arXiv 2602.08747), over the systems before it. Goodput is from 1.16 times to
// pardGain of theirs, drops from 1.6 times fewer to pardDrops, wasted computation from 1.5 times less to pardWastes.
const (
	pardGain   = 2.76
	pardDrops  = 17.0
	pardWastes = 62.0
	pardUpTo   = "abstract: up to, over systems before it"
)

// chain is four stages of one variant each, within 300 ms.
func chain() *setting {
	s := &setting{machines: 16, slo: 300 * ms, maxBatch: 16, scatter: true}
	last := []stage{
		{"find", []model{{"find", 1, 5 * ms, 4 * ms}}, 1}, {"track", []model{{"track", 1, 3 * ms, 2 * ms}}, 1},
		{"read", []model{{"read", 1, 6 * ms, 6 * ms}}, 1}, {"judge", []model{{"judge", 1, 4 * ms, 3 * ms}}, 0},
	}
	s.apps = [][]stage{last}
	return s
}

// dropping are the systems of Figure P1: three with the plan of Nexus for the load as it is, on all machines, and the
// default.
func dropping() []systems.System {
	pard := reproduce.System("pard")
	// Early drop at every stage's own deadline, with the queues of pard.
	central := reproduce.System("nexus")
	central.Name, central.Router = "nexus, one queue for each stage", "fcfs"
	out := []systems.System{pard, reproduce.System("nexus"), central}
	for n := range out {
		out[n].Scaler = "fixed"
	}
	return append(out, reproduce.System("sluice"))
}

// pardLoads are rates in queries/s. From pardOverloaded on they are more than the machines carry, which is about 890.
var pardLoads = []float64{600, 800, pardOverloaded, 1300, 1800}

const pardOverloaded = 1000

// pardOverload compares what is dropped, and where.
func pardOverload(r *runner, f *reproduce.Sheet) error {
	env, err := chain().environment(r.Solver)
	if err != nil {
		return err
	}
	graph := f.Chart("P1", "PARD: goodput and wasted machine time of a chain of four stages (modelled)", 2)
	for _, shape := range []float64{1, 0.25} {
		name := "Poisson"
		if shape < 1 {
			name = "clumps"
		}
		panel := graph.Panel(name+": goodput (queries/s)", "load (queries/s)", 0, reproduce.Auto)
		for _, rate := range pardLoads {
			at := f.At("arrivals", name, "load", rate)
			l := constant(rate, r.span(60*time.Second))
			l.shape = shape
			var pard runs
			for n, s := range dropping() {
				x := r.simulation(fmt.Sprint("P1 ", name, " ", rate, " ", s.Name), env, s, l)
				at.Row(s.Name, "goodput", "queries/s", x.Each(goodput))
				at.Row(s.Name, "violations", "%", x.Each(violations))
				at.Row(s.Name, "wasted machine time", "%", x.Each(wasted))
				panel.Point(s.Name, rate, x.Each(goodput))
				if n == 0 {
					pard = x
				}
				if n == 0 || rate < pardOverloaded {
					continue // nothing is dropped that could be divided by
				}
				for _, part := range []struct {
					name       string
					of, over   reproduce.Values
					pardClaims float64
				}{
					{"goodput of pard in parts of it", pard.Each(goodput), x.Each(goodput), pardGain},
					{"violations in parts of pard's", x.Each(violations), pard.Each(violations), pardDrops},
					{"wasted machine time in parts of pard's", x.Each(wasted), pard.Each(wasted), pardWastes},
				} {
					row := at.Row(s.Name, part.name, "", timesOver(part.of, part.over))
					if s.Planner == "nexus" {
						row.Published(part.pardClaims, pardUpTo)
					}
				}
			}
		}
	}
	f.Note("Figure P1: the plan is Nexus's for the load as it is and does not change. Under overload it divides all " +
		"machines among the stages in proportion. A part below a hundredth counts as one.")
	return nil
}

func goodput(x *outcome) float64 { return x.goodput }

func wasted(x *outcome) float64 { return x.wasted }
