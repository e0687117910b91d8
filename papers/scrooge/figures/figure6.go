package scrooge

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// contendersOf returns the systems of Figures 6 to 9 for a graph. Nexus has as many front-ends as in the paper. Both
// systems also run with the head-room that a higher finish rate needs; Nexus then has three more front-ends where these
// are its bottleneck.
func contendersOf(graph string) []contender {
	out := []contender{scroogeDefault, asWritten, withHeadroom(1), withHeadroom(1.4), withHeadroom(1.6), ours}
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

// asWritten is the paper's system to the letter, without head-room and with its placement and routing.
var asWritten = contender{name: "scrooge-written", system: "scrooge-written", turnOff: scroogeDefault.turnOff}

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
	nexus map[int][2]float64
}{
	"traffic": {97.7, map[int][2]float64{0: {1.218, 86.3}}},
	"face":    {98.2, map[int][2]float64{1: {0.456, 30.6}, 3: {none, 75.7}, 6: {1.319, 90.5}}},
	"tracker": {none, map[int][2]float64{1: {0.740, 31.9}, 4: {1.160, 97.6}}},
}

// publishedOf returns what was published of a contender: its cost over Scrooge's, and its finish rate.
func publishedOf(e contender, graph string) (cost, finish float64) {
	known := published6[graph]
	switch {
	case e.headroom > 0 || e == ours:
		// Head-room and the default system are ours: nothing was published.
		return none, none
	case e.system != "nexus":
		return none, known.ours
	}
	if p, ok := known.nexus[e.frontends]; ok {
		return p[0], p[1]
	}
	return none, none
}

const hoursOfYear = 8760

// publishedYear is what Scrooge saves on traffic against Nexus in a year, and publishedDay what a day of it costs, in $
// (§4.2, §4.4).
const publishedYear, publishedDay = 21_000, 267

// figure6 shows the cost of sessions and the share of frames in time.
func figure6(run *runner, f *reproduce.Sheet) error {
	for _, name := range nexusGraphs {
		g, contenders := run.graph(name), contendersOf(name)
		at := f.At("graph", name, "objective", g.objective)
		bars := f.Chart("6-"+name, "Scrooge, Figure 6: "+name, 1).
			Bars("cost over scrooge's, and the share of frames in time; f: front-ends, x: head-room")
		base := run.session(contenders[0], g).Each((*sessionRun).mean)
		written := run.session(asWritten, g).Each((*sessionRun).mean)
		for _, e := range contenders {
			s := run.session(e, g)
			cost, finish := s.Each((*sessionRun).mean), s.Each((*sessionRun).finishRate)
			publishedCost, publishedFinish := publishedOf(e, name)
			at.Row(e.name, "cost", "$/h", cost)
			at.Row(e.name, "cost over scrooge's", "", cost.Over(base)).Published(publishedCost, "§4.2, Figure 6")
			at.Row(e.name, "cost over scrooge-written's", "", cost.Over(written)).
				Published(publishedCost, "§4.2, Figure 6")
			day, year := at.Row(e.name, "cost of a day", "$", cost.Times(24)), at.Row(e.name,
				"more than scrooge-written in a year", "$", cost.With(written, func(c, w float64) float64 {
					return hoursOfYear * (c - w)
				}))
			if name == "traffic" && e == asWritten {
				day.Published(publishedDay, "§4.4")
			} else if name == "traffic" && e == nexus(0, 0) {
				year.Published(publishedYear, "§4.2: over")
			}
			at.Row(e.name, "finish rate", "%", finish).Published(publishedFinish, "§4.2, Figure 6")
			at.Row(e.name, "cost of frames in time", "$ a million", s.Each(func(s *sessionRun) float64 {
				return s.mean() * float64(len(s.cost)) / 3600 / reproduce.Sum(s.inTime) * 1e6
			}))
			at.Row(e.name, "least cost of what was asked", "$/h",
				s.Each(func(s *sessionRun) float64 { return s.bound }))
			at.Row(e.name, "cost over the least", "", s.Each((*sessionRun).overLeast))
			bars.Bar("cost over scrooge's", e.shortName(), cost.Over(base).First())
			bars.Bar("finish rate", e.shortName(), finish.First().Map(func(v float64) float64 { return v / 100 }))
		}
	}
	return nil
}

// smoothSeconds is the span over which the lines of Figures 7 to 9 are averaged.
const smoothSeconds = 5

// overTime returns the figure that draws a session of a graph second by second (Figures 7 to 9).
func overTime(name string) func(*runner, *reproduce.Sheet) error {
	return func(run *runner, f *reproduce.Sheet) error {
		g, at := run.graph(name), f.At("graph", name)
		c := f.Chart(f.Figure+"-"+name, "Scrooge, Figure "+f.Figure+": a session of "+name, 1)
		rates := c.Panel("items/s that stages began", "s", 0, reproduce.Auto)
		cost := c.Panel("cost ($/h)", "s", 0, reproduce.Auto)
		finish := c.Panel("finish rate (%)", "s", 0, 100)
		for k, e := range contendersOf(name) {
			s := run.session(e, g)
			for stage := range g.stages {
				if k == 0 {
					rates.Curve(g.stages[stage].name, func() (x, y []float64) {
						return smoothed(s.First().begun[stage], nil)
					})
				}
			}
			if e.headroom == 0 { // as in the paper: more lines could not be told apart
				cost.Curve(e.shortName(), func() (x, y []float64) { return smoothed(s.First().cost, nil) })
				finish.Curve(e.shortName(), func() (x, y []float64) {
					return smoothed(s.First().inTime, s.First().sent)
				})
			}
			at.Row(e.name, "seconds with at least 98 % of their frames in time", "%",
				s.Each(func(s *sessionRun) float64 { return s.secondsWithFinish(98) }))
			at.Row(e.name, "highest cost", "$/h", s.Each(func(s *sessionRun) float64 { return slices.Max(s.cost) }))
		}
		return nil
	}
}

// smoothed returns means of y over smoothSeconds. With of it returns y as a share of it, in per cent.
func smoothed(y, of []float64) (at, mean []float64) {
	for k := 0; k+smoothSeconds <= len(y); k += smoothSeconds {
		v := reproduce.Sum(y[k:k+smoothSeconds]) / smoothSeconds
		if of != nil {
			// NaN, and so a gap, where nothing was sent
			v = 100 * reproduce.Sum(y[k:k+smoothSeconds]) / reproduce.Sum(of[k:k+smoothSeconds])
		}
		at, mean = append(at, float64(k)), append(mean, v)
	}
	return at, mean
}
