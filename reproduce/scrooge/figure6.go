package scrooge

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
)

// rivals are the systems of Figures 6 to 9, by graph: Nexus with as many front-ends as the paper gave it; and both with
// the head-room that a higher finish rate takes, Nexus with three more front-ends where they are what it lacks.
func rivals(graph string) []entrant {
	out := []entrant{ours, roomy(1), roomy(1.4), roomy(1.6)}
	switch graph {
	case "traffic":
		return append(out, nexus(0, 0), nexus(0, 1.2), nexus(0, 1.4))
	case "face":
		return append(out, nexus(1, 0), nexus(3, 0), nexus(6, 0), nexus(9, 1.4))
	}
	return append(out, nexus(1, 0), nexus(3, 0), nexus(4, 0), nexus(7, 1.4))
}

// nexus has so many front-ends, 0 for none, and plans for so many times the demand, 0 for itself.
func nexus(frontends int, headroom float64) entrant {
	name := "nexus"
	if frontends > 0 {
		name += fmt.Sprintf(", %d front-ends", frontends)
	}
	if headroom > 0 {
		name += fmt.Sprintf(", head-room %v", headroom)
	}
	return entrant{name: name, system: "nexus", frontends: frontends, headroom: headroom}
}

// short is the name that there is room for below a bar.
func (e *entrant) short() string {
	s := e.system
	if e.frontends > 0 {
		s += fmt.Sprintf(" %df", e.frontends)
	}
	if e.headroom > 0 {
		s += fmt.Sprintf(" %vx", e.headroom)
	}
	return s
}

// ours is the system as its paper describes it, allocated and placed by us. Which turn-off delay the paper's comparison
// has is not said; its finish rates are those that it gives for 30 s.
var ours = entrant{name: "scrooge", system: "scrooge", turnOff: 30 * time.Second}

// roomy is ours planned for so many times the demand: what a finish rate costs.
func roomy(by float64) entrant {
	e := ours
	e.name, e.headroom = fmt.Sprintf("scrooge, head-room %v", by), by
	return e
}

// published6 is what §4.2 says of a graph by number of front-ends: Nexus's cost over Scrooge's, and its finish rate;
// and Scrooge's finish rate, in per cent.
var published6 = map[string]struct {
	ours  float64
	nexus map[int][2]float64 // 0 for what is not given
}{
	"traffic": {97.7, map[int][2]float64{0: {1.218, 86.3}}},
	"face":    {98.2, map[int][2]float64{1: {0.456, 30.6}, 3: {0, 75.7}, 6: {1.319, 90.5}}},
	"tracker": {0, map[int][2]float64{1: {0.740, 31.9}, 4: {1.160, 97.6}}},
}

// figure6 is what sessions cost and how many frames are in time.
func figure6(l *lab) error {
	for _, name := range compared {
		g, rivals := l.graph(name), rivals(name)
		var tasks []*reproduce.Task
		for _, e := range rivals {
			tasks = append(tasks, l.serves(e, g))
		}
		l.Report(func(o *reproduce.Outcome) error {
			at, known := setting("graph", name, "objective", g.objective), published6[name]
			cost, finish := plot.Line{Name: "cost over scrooge's"}, plot.Line{Name: "finish rate (%)"}
			base := each(tasks[0], func(s *served) float64 { return s.mean() })
			for k, e := range rivals {
				costs, finishes := each(tasks[k], func(s *served) float64 {
					return s.mean()
				}), each(tasks[k], func(s *served) float64 { return s.finish() })
				r, f := row("6", e.name, "cost over scrooge's", "", at), row("6", e.name, "finish rate", "%", at)
				switch {
				case e.headroom > 0:
					// Ours: nothing was published.
				case e.system == "nexus":
					if p := known.nexus[e.frontends]; p[0] > 0 {
						r = said(r, p[0], "§4.2, Figure 6")
					}
					if p := known.nexus[e.frontends]; p[1] > 0 {
						f = said(f, p[1], "§4.2, Figure 6")
					}
				case known.ours > 0:
					f = said(f, known.ours, "§4.2, Figure 6")
				}
				o.AddRow(row("6", e.name, "cost", "$/h", at), costs...)
				o.AddRow(r, over(costs, base)...)
				o.AddRow(f, finishes...)
				o.AddRow(row("6", e.name, "cost of frames in time", "$ a million", at),
					each(tasks[k], func(s *served) float64 {
						return s.mean() * float64(len(s.cost)) / 3600 / sum(s.inTime) * 1e6
					})...)
				o.AddRow(row("6", e.name, "least cost of what was asked", "$/h", at),
					each(tasks[k], func(s *served) float64 {
						return s.bound
					})...)
				o.AddRow(row("6", e.name, "cost over the least", "", at), each(tasks[k], func(s *served) float64 {
					return s.mean() / s.bound
				})...)
				cost.Y, finish.Y = append(cost.Y, over(costs, base)[0]), append(finish.Y, finishes[0]/100)
			}
			var names []string
			for _, e := range rivals {
				names = append(names, e.short())
			}
			finish.Name = "finish rate"
			chart(o, "6-"+name, "6: "+name, 1,
				bars("cost over scrooge's, and the share of frames in time; f: front-ends, x: head-room", names, cost,
					finish))
			return nil
		})
	}
	return nil
}

// smooth is over how many seconds the lines of Figures 7 to 9 are drawn as means.
const smooth = 5

// overTime draws a session of a graph second by second (Figures 7 to 9).
func overTime(figure, name string) func(*lab) error {
	return func(l *lab) error {
		g, rivals := l.graph(name), rivals(name)
		var tasks []*reproduce.Task
		for _, e := range rivals {
			tasks = append(tasks, l.serves(e, g))
		}
		l.Report(func(o *reproduce.Outcome) error {
			rates := plot.Panel{Name: "items/s that stages began", XName: "s", Low: 0, High: math.NaN()}
			cost := plot.Panel{Name: "cost ($/h)", XName: "s", Low: 0, High: math.NaN()}
			finish := plot.Panel{Name: "finish rate (%)", XName: "s", Low: 0, High: 100}
			for k, e := range rivals {
				first := tasks[k].Results[0].(*served)
				if k == 0 {
					for s := range g.stages {
						rates.Lines = append(rates.Lines, line(g.stages[s].name, first.begun[s], nil))
					}
				}
				if e.headroom == 0 { // as the paper has them: more lines cannot be told apart
					cost.Lines = append(cost.Lines, line(e.short(), first.cost, nil))
					finish.Lines = append(finish.Lines, line(e.short(), first.inTime, first.sent))
				}
				at := setting("graph", name)
				o.AddRow(row(figure, e.name, "seconds with at least 98 % of their frames in time", "%", at),
					each(tasks[k], func(s *served) float64 {
						return s.seconds(98)
					})...)
				o.AddRow(row(figure, e.name, "highest cost", "$/h", at), each(tasks[k], func(s *served) float64 {
					return highest(s.cost)
				})...)
			}
			chart(o, figure+"-"+name, figure+": a session of "+name, 1, rates, cost, finish)
			return nil
		})
		return nil
	}
}

// line is means over some seconds; of a share in per cent, where of is not nil.
func line(name string, y, of []float64) plot.Line {
	out := plot.Line{Name: name}
	for k := 0; k+smooth <= len(y); k += smooth {
		v := sum(y[k:k+smooth]) / smooth
		if of != nil {
			v = 100 * sum(y[k:k+smooth]) / sum(of[k:k+smooth]) // not a number, and a gap, where nothing was sent
		}
		out.X, out.Y = append(out.X, float64(k)), append(out.Y, v)
	}
	return out
}

func highest(x []float64) (out float64) {
	for _, v := range x {
		out = max(out, v)
	}
	return out
}
