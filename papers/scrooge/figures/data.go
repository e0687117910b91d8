// Package scrooge runs the experiments of Scrooge (SoCC 2021, §4) with the planners, engine and simulator of this
// project. The authors published no profiles. A documented model of profiles, fitted to the numbers in the paper's
// text, takes their place. So all measurements here are of modelled models.
package scrooge

import (
	"embed"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

//go:embed data/*.csv
var files embed.FS

var data = reproduce.Data{Files: files}

const ms = time.Millisecond

// graph is one of the seven applications (Figure 1). Frames enter at its first stage.
type graph struct {
	name      string
	objective time.Duration
	low, high float64 // bounds of a client's rate, in frames/s
	stages    []stage // in topological order
}

// stage is a module of a graph.
type stage struct {
	name     string
	model    *model
	stateful bool
	next     []edge
}

// edge sends items to a later stage. Content determines how many there are for an item served, between least and most.
type edge struct {
	to          int // index in graph.stages
	least, most float64
}

// meanItems returns the mean number of items sent along the edge for an item served, at a level of content from 0 to 1.
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

// index returns the index of a stage, or -1.
func (g *graph) index(name string) int {
	return slices.IndexFunc(g.stages, func(s stage) bool { return s.name == name })
}

func millis(x float64) time.Duration { return time.Duration(x * float64(ms)) }
