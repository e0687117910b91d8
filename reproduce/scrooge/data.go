// Package scrooge runs the experiments of Scrooge (SoCC 2021, §4) on this project's planners, engine and simulator. The
// authors published no profile of their models: a documented model of profiles, held to the figures in the paper's
// text, takes their place, so that what is measured here is of modelled models.
package scrooge

import (
	"embed"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/reproduce"
)

//go:embed data/*.csv
var files embed.FS

var data = reproduce.Data{Files: files}

const ms = time.Millisecond

// graph is one of the seven applications (Figure 1): its first stage is where frames enter.
type graph struct {
	name      string
	objective time.Duration
	low, high float64 // frames/s of a client
	stages    []stage // in a topological order
}

// stage is a module of a graph.
type stage struct {
	name     string
	model    *model
	stateful bool
	next     []edge
}

// edge hands items to a later stage, as many for an item served as the content makes them.
type edge struct {
	to          int // position in graph.stages
	least, most float64
}

// meanItems are sent along the edge for an item served, in the mean, when so much is going on.
func (e *edge) meanItems(level float64) float64 { return e.least + (e.most-e.least)*level }

// graphs reads the seven applications, in the paper's order.
func graphs() ([]graph, error) {
	models, err := models()
	if err != nil {
		return nil, err
	}
	rows, err := data.Records("graphs.csv", "graph", "objective_ms", "rate_low", "rate_high")
	if err != nil {
		return nil, err
	}
	var out []graph
	for n, r := range rows {
		v, err := reproduce.Numbers("graphs.csv", n, r[1:])
		if err != nil {
			return nil, err
		}
		out = append(out, graph{name: r[0], objective: millis(v[0]), low: v[1], high: v[2]})
	}
	find := func(file string, n int, name string) (*graph, error) {
		at := slices.IndexFunc(out, func(g graph) bool { return g.name == name })
		if at < 0 {
			return nil, fmt.Errorf("data/%s: record %d: there is no graph %q", file, n+1, name)
		}
		return &out[at], nil
	}
	if rows, err = data.Records("stages.csv", "graph", "stage", "model", "stateful"); err != nil {
		return nil, err
	}
	for n, r := range rows {
		g, err := find("stages.csv", n, r[0])
		if err != nil {
			return nil, err
		}
		m := models[r[2]]
		if m == nil {
			return nil, fmt.Errorf("data/stages.csv: record %d: there is no model %q", n+1, r[2])
		}
		g.stages = append(g.stages, stage{name: r[1], model: m, stateful: r[3] == "1"})
	}
	if rows, err = data.Records("edges.csv", "graph", "from", "to", "least", "most"); err != nil {
		return nil, err
	}
	for n, r := range rows {
		g, err := find("edges.csv", n, r[0])
		if err != nil {
			return nil, err
		}
		v, err := reproduce.Numbers("edges.csv", n, r[3:])
		if err != nil {
			return nil, err
		}
		from, to := g.index(r[1]), g.index(r[2])
		if from < 0 || to <= from {
			return nil, fmt.Errorf("data/edges.csv: record %d: no edge from %q to %q of %s is possible", n+1, r[1],
				r[2], r[0])
		}
		g.stages[from].next = append(g.stages[from].next, edge{to, v[0], v[1]})
	}
	return out, nil
}

// index returns the position of a stage, or -1.
func (g *graph) index(name string) int {
	return slices.IndexFunc(g.stages, func(s stage) bool { return s.name == name })
}

func millis(x float64) time.Duration { return time.Duration(x * float64(ms)) }
