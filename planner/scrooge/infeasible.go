package scrooge

import (
	"fmt"
	"time"
)

// Infeasible tells that no allocation keeps the objective.
type Infeasible struct {
	SLO time.Duration
	// Least is the shortest objective that could be kept; 0 when none could, since Module has no mode.
	Least time.Duration
	// Module is in the way: of the modules on the path that takes Least, the one with the most of it, Own.
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

// infeasible finds out what is in the way.
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

// inTheWay tells that the least latencies of the modules do not keep the objective.
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
