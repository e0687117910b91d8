package planning

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/proteus"
	"github.com/sluice-serving/sluice/policy/plan"
)

// Frontier is the best accuracy of a fleet at several throughputs, with one system.
type Frontier struct {
	System   string   `json:"system"`
	WhatIf   string   `json:"what_if,omitempty"`
	Demand   float64  `json:"demand"` // queries/s of the mix that is multiplied
	Error    string   `json:"error,omitempty"`
	Points   []Point  `json:"points"` // by rising throughput
	Variants []string `json:"variants,omitempty"`
}

// Point is a point of a frontier.
type Point struct {
	Multiple   float64   `json:"multiple"`   // of the demand
	Throughput float64   `json:"throughput"` // queries/s served
	Accuracy   float64   `json:"accuracy"`   // mean over them
	Apps       []float64 `json:"app_accuracies"`
	Bound      *float64  `json:"bound,omitempty"`
	Gap        *float64  `json:"gap,omitempty"`
	// Utility and Fluid are those of Plan: what the plan serves, and what no rule can pass on these machines.
	Utility *float64 `json:"utility,omitempty"`
	Fluid   *Fluid   `json:"fluid_bound,omitempty"`
	// Shares are by index in the frontier's Variants the parts of all items served.
	Shares []float64 `json:"variant_shares,omitempty"`
}

// Frontiers computes, for every system and fleet of a question, the best accuracy at so many throughputs, from the
// largest multiple of the first demand that the fleet carries down. points is at least 2. Errors are those of [Plans].
func Frontiers(ctx context.Context, q *Question, points int) (*Report, error) {
	a := &answerer{Question: q}
	fleets := q.fleets()
	total := len(q.Systems) * len(fleets)
	out := &Report{File: q.Of.Name()}
	for _, s := range q.Systems {
		for i := range fleets {
			done := len(out.Frontiers)
			v, err := a.frontier(ctx, s, &fleets[i], points, func(share float64) {
				q.Of.Options().Progress((float64(done)+share)/float64(total), "frontier of "+s.Name)
			})
			if err != nil {
				return nil, err
			}
			out.Frontiers = append(out.Frontiers, *v)
		}
	}
	return out, nil
}

func (a *answerer) frontier(ctx context.Context, s systems.System, f *Fleet, points int,
	progress func(share float64)) (*Frontier, error) {
	p, d := f.profiled, &a.Demands[0]
	planner, r, err := a.request(ctx, s, f, d)
	if err != nil {
		return nil, err
	}
	v := &Frontier{
		System: s.Name, WhatIf: f.name, Demand: d.Total(), Variants: p.VariantNames(), Points: []Point{},
	}
	var failed error
	add := func(multiple float64, made *plan.Plan) {
		x, err := a.pointOf(ctx, planner, p, d.times(multiple), multiple, made)
		failed = errors.Join(failed, err)
		v.Points = append(v.Points, x)
		progress(float64(len(v.Points)) / float64(points))
	}
	if exact, ok := planner.(*proteus.Planner); ok {
		for x, more := range proteus.Frontier(ctx, exact, r, points) {
			if err = more; err == nil {
				add(x.Multiple, x.Plan)
			}
		}
	} else {
		err = sample(ctx, p, planner, r, points, add)
	}
	if ctx.Err() != nil || failed != nil {
		return nil, cmp.Or(ctx.Err(), failed)
	}
	if err != nil {
		v.Error = err.Error()
	}
	slices.Reverse(v.Points)
	return v, nil
}

// pointOf describes a plan as a point of a frontier.
func (a *answerer) pointOf(ctx context.Context, planner plan.Planner, p *host.Profiled, d *Demand, multiple float64,
	made *plan.Plan) (Point, error) {
	x := describeBy(planner, p, d, made)
	if err := a.beside(ctx, p, d, &x); err != nil {
		return Point{}, err
	}
	out := Point{
		Multiple: multiple, Throughput: x.Served, Bound: x.Bound, Gap: x.Gap, Utility: x.Utility, Fluid: x.Fluid,
		Shares: make([]float64, len(p.Spec().Variants)),
	}
	if x.Accuracy != nil {
		out.Accuracy = *x.Accuracy
	}
	for _, a := range x.Apps {
		accuracy := 0.0
		if a.Accuracy != nil {
			accuracy = *a.Accuracy
		}
		out.Apps = append(out.Apps, accuracy)
	}
	sum := 0.0
	for n, i := range made.Instances {
		out.Shares[i.Variants[0].Variant] += x.Instances[n].Rate
		sum += x.Instances[n].Rate
	}
	for i := range out.Shares {
		out.Shares[i] /= max(sum, 1e-12)
	}
	return out, nil
}

const (
	farMultiple = 1 << 20 // of a demand: no fleet carries more
	halvings    = 12      // bisection steps after the last doubling: precise to about one in 4000
)

// sample plans the frontier for a planner without a method for it, from the largest multiple that it carries down.
func sample(ctx context.Context, p *host.Profiled, planner plan.Planner, r plan.Request, points int,
	add func(multiple float64, made *plan.Plan)) error {
	base := Demand{Rates: r.Rates}
	try := func(multiple float64) (made *plan.Plan, carried bool, err error) {
		d := base.times(multiple)
		made, err = planner.Plan(ctx, plan.Request{Spec: r.Spec, Snapshot: r.Snapshot, Rates: d.Rates})
		if err != nil {
			return nil, false, err
		}
		v := describeBy(planner, p, d, made)
		return made, !v.FallsShort(), nil
	}
	low, high := 0.0, 1.0
	for ; high < farMultiple; low, high = high, high*2 {
		if _, carried, err := try(high); err != nil {
			return err
		} else if !carried {
			break
		}
	}
	for range halvings {
		mid := (low + high) / 2
		_, carried, err := try(mid)
		if err != nil {
			return err
		}
		if carried {
			low = mid
		} else {
			high = mid
		}
	}
	for k := points; k > 0 && low > 0; k-- {
		multiple := low * float64(k) / float64(points)
		made, _, err := try(multiple)
		if err != nil {
			return err
		}
		add(multiple, made)
	}
	return nil
}
