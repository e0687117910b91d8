package scrooge

import (
	"fmt"
	"time"
)

// Infeasible says that no allocation keeps the objective.
type Infeasible struct {
	SLO time.Duration
	// Least is the shortest objective that could be kept; 0 when none could, because Module has no mode.
	Least time.Duration
	// Module is the bottleneck, by its index in Problem.Modules: of the modules on the path that takes Least, the one
	// with the largest part of it, Own.
	Module int
	Own    time.Duration
}

func (e *Infeasible) Error() string {
	if e.Least == 0 {
		return fmt.Sprintf("scrooge: module %d has no mode: add a profile of it on a machine type that is to be had",
			e.Module)
	}
	return fmt.Sprintf(
		"scrooge: an objective of %v cannot be kept: the least possible is %v, of which module %d takes %v: "+
			"raise the objective, or add faster modes or machine types for this module", e.SLO, e.Least, e.Module,
		e.Own)
}

// infeasible returns the *Infeasible of a problem.
func (p *Problem) infeasible(g *graph) error {
	latency := make([]time.Duration, len(p.Modules))
	for i := range p.Modules {
		m := p.module(i)
		m.frontier(2*longest, maxCurveWork)
		if len(m.curve) == 0 {
			return &Infeasible{SLO: p.SLO, Module: i}
		}
		latency[i] = m.curve[0].latency
	}
	return g.explainInfeasible(latency, p.SLO)
}

// explainInfeasible returns the *Infeasible for the modules' least latencies.
func (g *graph) explainInfeasible(latency []time.Duration, objective time.Duration) error {
	path, least := g.longestPath(latency)
	e := &Infeasible{SLO: objective, Least: least, Module: path[0]}
	for _, i := range path {
		if latency[i] > e.Own {
			e.Module, e.Own = i, latency[i]
		}
	}
	return e
}
