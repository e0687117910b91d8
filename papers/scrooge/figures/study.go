package scrooge

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

var study = reproduce.Study[*runner]{
	Name: "scrooge", Title: "Scrooge: A Cost-Effective Deep Learning Inference System (SoCC 2021)",
	Solver: true, New: newRunner,
	Figures: []reproduce.Declaration[*runner]{
		{Name: "1", Declare: figure1,
			Doc: "the seven graphs: what 12 clients ask of them, and the machines that takes"},
		{Name: "T1", Declare: table1, Doc: "machine types of three clouds, beside those of Figure 11's wide market"},
		{Name: "P", Declare: figureP, Doc: "what it costs to profile the models"},
		{Name: "5", Declare: figure5, Doc: "the modelled profile of SSD-Inception, by batch size and concurrency"},
		{Name: "6", Declare: figure6,
			Doc: "cost and finish rate of sessions by Scrooge and Nexus, and the least that they could cost"},
		{Name: "7", Declare: overTime("traffic"), Doc: "a session of traffic over time"},
		{Name: "8", Declare: overTime("face"), Doc: "a session of face over time"},
		{Name: "9", Declare: overTime("tracker"), Doc: "a session of tracker over time"},
		{Name: "10", Declare: figure10,
			Doc: "cost over the least: the two-step program as written, greedy and exact allocation"},
		{Name: "11", Declare: figure11, OnRequest: true,
			Doc: "how long allocations take with 2 and 30 machine types, " +
				"on this machine; when asked for by name"},
		{Name: "12", Declare: figure12, Doc: "cost by objective, seven graphs"},
		{Name: "13", Declare: figure13,
			Doc: "cost without spatial multiplexing, and the throughput of a machine, by objective"},
		{Name: "14", Declare: figure14, Doc: "finish rate and cost by turn-off delay, seven graphs"},
		{Name: "M", Declare: figureM,
			Doc: "ours: from the paper's system to ours a step at a time, a greedy allocation, one batch at a time"},
	},
	Notes: []string{"Profiles are modelled, not measured: the authors published none. The model is held to what the " +
		"paper's text says of them (docs/papers.md, Scrooge)."},
}

// Paper returns the experiments of Scrooge.
func Paper() reproduce.Paper { return study.Paper() }

// runner collects what the figures need. Tests lower sampled and span.
type runner struct {
	*reproduce.Runner
	graphs  []graph
	sampled int           // decisions of a session that Figures 10 and 11 use
	span    time.Duration // simulated length of sessions
}

func newRunner(r reproduce.Request) (*runner, error) {
	all, err := graphs()
	return &runner{Runner: reproduce.NewRunner(r), graphs: all, sampled: 40, span: span}, err
}

// graph returns one of the seven by name.
func (run *runner) graph(name string) *graph {
	for i := range run.graphs {
		if run.graphs[i].name == name {
			return &run.graphs[i]
		}
	}
	panic("scrooge: no graph " + name) // all names are in this package
}

// nexusGraphs are the graphs that Nexus can run (§4.1).
var nexusGraphs = []string{"traffic", "face", "tracker"}

// relaxations are the objectives of Figures 12 and 13 as multiples of a graph's own: 400, 600, 800 and 1,000 ms for 400
// ms.
var relaxations = []float64{1, 1.5, 2, 2.5}

// none stands for a number that was not published.
var none = math.NaN()
