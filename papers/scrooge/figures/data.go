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
func graphs() (out []graph, err error) {
	models, err := models()
	if err != nil {
		return nil, err
	}
	if err := data.Read("graphs.csv", "graph,objective_ms,rate_low,rate_high", 1, func(key []string,
		v []float64) error {
		out = append(out, graph{name: key[0], objective: millis(v[0]), low: v[1], high: v[2]})
		return nil
	}); err != nil {
		return nil, err
	}
	find := func(name string) (*graph, error) {
		at := slices.IndexFunc(out, func(g graph) bool { return g.name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no graph %q", name)
		}
		return &out[at], nil
	}
	if err := data.Read("stages.csv", "graph,stage,model,stateful", 4, func(key []string, _ []float64) error {
		g, err := find(key[0])
		if err != nil {
			return err
		}
		m := models[key[2]]
		if m == nil {
			return fmt.Errorf("there is no model %q", key[2])
		}
		g.stages = append(g.stages, stage{name: key[1], model: m, stateful: key[3] == "1"})
		return nil
	}); err != nil {
		return nil, err
	}
	return out, data.Read("edges.csv", "graph,from,to,least,most", 3, func(key []string, v []float64) error {
		g, err := find(key[0])
		if err != nil {
			return err
		}
		from, to := g.index(key[1]), g.index(key[2])
		if from < 0 || to <= from {
			return fmt.Errorf("no edge from %q to %q of %s is possible", key[1], key[2], key[0])
		}
		g.stages[from].next = append(g.stages[from].next, edge{to, v[0], v[1]})
		return nil
	})
}

// index returns the index of a stage, or -1.
func (g *graph) index(name string) int {
	return slices.IndexFunc(g.stages, func(s stage) bool { return s.name == name })
}

func millis(x float64) time.Duration { return time.Duration(x * float64(ms)) }
