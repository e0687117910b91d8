package scrooge

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// contendersOf returns the systems of Figures 6 to 9 for a graph. Nexus has as many front-ends as in the paper. Both
// systems also run with the head-room that a higher finish rate needs; Nexus then has three more front-ends where these
// are its bottleneck.
func contendersOf(graph string) []contender {
	out := []contender{scroogeDefault, withHeadroom(1), withHeadroom(1.4), withHeadroom(1.6), ours}
	switch graph {
	case "traffic":
		return append(out, nexus(0, 0), nexus(0, 1.2), nexus(0, 1.4))
	case "face":
		return append(out, nexus(1, 0), nexus(3, 0), nexus(6, 0), nexus(9, 1.4))
	}
	return append(out, nexus(1, 0), nexus(3, 0), nexus(4, 0), nexus(7, 1.4))
}

// nexus returns Nexus with so many front-ends, 0 for none, and the given head-room, 0 for its own.
func nexus(frontends int, headroom float64) contender {
	name := "nexus"
	if frontends > 0 {
		name += fmt.Sprintf(", %d front-ends", frontends)
	}
	if headroom > 0 {
		name += fmt.Sprintf(", head-room %v", headroom)
	}
	return contender{name: name, system: "nexus", frontends: frontends, headroom: headroom}
}

// shortName returns a name that fits below a bar.
func (e *contender) shortName() string {
	s := e.system
	if e.frontends > 0 {
		s += fmt.Sprintf(" %df", e.frontends)
	}
	if e.headroom > 0 {
		s += fmt.Sprintf(" %vx", e.headroom)
	}
	return s
}

// scroogeDefault is the system as its paper describes it, with our allocation and placement. The paper does not give
// the turn-off delay of its comparison. Its finish rates there are those of 30 s elsewhere.
var scroogeDefault = contender{name: "scrooge", system: "scrooge", turnOff: 30 * time.Second}

// ours is the default system, without options.
var ours = contender{name: systems.Default, system: systems.Default}

// withHeadroom returns scroogeDefault planned for a multiple of the demand. It shows the cost of a higher finish rate.
func withHeadroom(by float64) contender {
	e := scroogeDefault
	e.name, e.headroom = fmt.Sprintf("scrooge, head-room %v", by), by
	return e
}

// published6 has what §4.2 says of a graph: Scrooge's finish rate in per cent, and by number of front-ends Nexus's cost
// over Scrooge's and its finish rate.
var published6 = map[string]struct {
	ours  float64
	nexus map[int][2]float64 // 0 for numbers that are not given
}{
	"traffic": {97.7, map[int][2]float64{0: {1.218, 86.3}}},
	"face":    {98.2, map[int][2]float64{1: {0.456, 30.6}, 3: {0, 75.7}, 6: {1.319, 90.5}}},
	"tracker": {0, map[int][2]float64{1: {0.740, 31.9}, 4: {1.160, 97.6}}},
}

// figure6 shows the cost of sessions and the share of frames in time.
func figure6(run *runner) error {
	for _, name := range nexusGraphs {
		g, contenders := run.graph(name), contendersOf(name)
		var tasks []*reproduce.Task
		for _, e := range contenders {
			tasks = append(tasks, run.simulationTask(e, g))
		}
		run.Report(func(o *reproduce.Outcome) error {
			at, known := reproduce.Setting("graph", name, "objective", g.objective), published6[name]
			cost, finish := plot.Line{Name: "cost over scrooge's"}, plot.Line{Name: "finish rate (%)"}
			base := reproduce.Each(tasks[0], func(s *sessionRun) float64 { return s.mean() })
			for k, e := range contenders {
				costs, finishes := reproduce.Each(tasks[k], func(s *sessionRun) float64 {
					return s.mean()
				}),
					reproduce.Each(tasks[k], func(s *sessionRun) float64 { return s.finishRate() })
				r, f := row("6", e.name, "cost over scrooge's", "", at), row("6", e.name, "finish rate", "%", at)
				switch {
				case e.headroom > 0 || e == ours:
					// Head-room and the default system are ours: nothing was published.
				case e.system == "nexus":
					if p := known.nexus[e.frontends]; p[0] > 0 {
						r = r.WithPublished(p[0], "§4.2, Figure 6")
					}
					if p := known.nexus[e.frontends]; p[1] > 0 {
						f = f.WithPublished(p[1], "§4.2, Figure 6")
					}
				case known.ours > 0:
					f = f.WithPublished(known.ours, "§4.2, Figure 6")
				}
				o.AddRow(row("6", e.name, "cost", "$/h", at), costs...)
				o.AddRow(r, reproduce.Ratios(costs, base)...)
				o.AddRow(f, finishes...)
				o.AddRow(row("6", e.name, "cost of frames in time", "$ a million", at),
					reproduce.Each(tasks[k], func(s *sessionRun) float64 {
						return s.mean() * float64(len(s.cost)) / 3600 / reproduce.Sum(s.inTime) * 1e6
					})...)
				o.AddRow(row("6", e.name, "least cost of what was asked", "$/h", at),
					reproduce.Each(tasks[k], func(s *sessionRun) float64 {
						return s.bound
					})...)
				o.AddRow(row("6", e.name, "cost over the least", "", at),
					reproduce.Each(tasks[k], func(s *sessionRun) float64 {
						return s.mean() / s.bound
					})...)
				cost.Y, finish.Y = append(cost.Y, reproduce.Ratios(costs, base)[0]), append(finish.Y, finishes[0]/100)
			}
			var names []string
			for _, e := range contenders {
				names = append(names, e.shortName())
			}
			finish.Name = "finish rate"
			addChart(o, "6-"+name, "6: "+name, 1,
				reproduce.Bars("cost over scrooge's, and the share of frames in time; f: front-ends, x: head-room",
					names, cost,
					finish))
			return nil
		})
	}
	return nil
}

// smoothSeconds is the span over which the lines of Figures 7 to 9 are averaged.
const smoothSeconds = 5

// overTime returns the figure that draws a session of a graph second by second (Figures 7 to 9).
func overTime(figure, name string) func(*runner) error {
	return func(run *runner) error {
		g, contenders := run.graph(name), contendersOf(name)
		var tasks []*reproduce.Task
		for _, e := range contenders {
			tasks = append(tasks, run.simulationTask(e, g))
		}
		run.Report(func(o *reproduce.Outcome) error {
			rates := plot.Panel{Name: "items/s that stages began", XName: "s", Low: 0, High: math.NaN()}
			cost := plot.Panel{Name: "cost ($/h)", XName: "s", Low: 0, High: math.NaN()}
			finish := plot.Panel{Name: "finish rate (%)", XName: "s", Low: 0, High: 100}
			for k, e := range contenders {
				first := tasks[k].Results[0].(*sessionRun)
				if k == 0 {
					for s := range g.stages {
						rates.Lines = append(rates.Lines, smoothedLine(g.stages[s].name, first.begun[s], nil))
					}
				}
				if e.headroom == 0 { // as in the paper: more lines could not be told apart
					cost.Lines = append(cost.Lines, smoothedLine(e.shortName(), first.cost, nil))
					finish.Lines = append(finish.Lines, smoothedLine(e.shortName(), first.inTime, first.sent))
				}
				at := reproduce.Setting("graph", name)
				o.AddRow(row(figure, e.name, "seconds with at least 98 % of their frames in time", "%", at),
					reproduce.Each(tasks[k], func(s *sessionRun) float64 {
						return s.secondsWithFinish(98)
					})...)
				o.AddRow(row(figure, e.name, "highest cost", "$/h", at),
					reproduce.Each(tasks[k], func(s *sessionRun) float64 {
						return highest(s.cost)
					})...)
			}
			addChart(o, figure+"-"+name, figure+": a session of "+name, 1, rates, cost, finish)
			return nil
		})
		return nil
	}
}

// smoothedLine draws means of y over smoothSeconds. With of it draws y as a share of it, in per cent.
func smoothedLine(name string, y, of []float64) plot.Line {
	out := plot.Line{Name: name}
	for k := 0; k+smoothSeconds <= len(y); k += smoothSeconds {
		v := reproduce.Sum(y[k:k+smoothSeconds]) / smoothSeconds
		if of != nil {
			// NaN, and so a gap, where nothing was sent
			v = 100 * reproduce.Sum(y[k:k+smoothSeconds]) / reproduce.Sum(of[k:k+smoothSeconds])
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
