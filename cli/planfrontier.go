package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/planner/proteus"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/systems"
)

// frontierView is what a fleet gives at every throughput, with one system.
type frontierView struct {
	System   string      `json:"system"`
	WhatIf   string      `json:"what_if,omitempty"`
	Demand   float64     `json:"demand"` // queries/s of the mix that is multiplied
	Error    string      `json:"error,omitempty"`
	Points   []pointView `json:"points"` // by rising throughput
	Variants []string    `json:"variants,omitempty"`
}

// pointView is a point of a frontier.
type pointView struct {
	Multiple   float64   `json:"multiple"`   // of the demand
	Throughput float64   `json:"throughput"` // queries/s served
	Accuracy   float64   `json:"accuracy"`   // mean over them
	Apps       []float64 `json:"app_accuracies"`
	Bound      *float64  `json:"bound,omitempty"`
	Gap        *float64  `json:"gap,omitempty"`
	// Shares are, by the frontier's variants, parts of all items served.
	Shares []float64 `json:"variant_shares,omitempty"`
}

func (p *planning) runFrontier(e *Env) error {
	points := p.points
	if points == 0 {
		points = defaultFrontier
	}
	if points < 2 {
		return exit(ExitUsage, "--points is %d, want at least 2 for a frontier", points)
	}
	if p.out != "" && len(p.systems)*len(p.fleets) > plot.MaxFrontiers {
		return exit(ExitUsage,
			"%d frontiers do not fit into one plot, %d do: name fewer systems or changes, or leave out --out",
			len(p.systems)*len(p.fleets), plot.MaxFrontiers)
	}
	report := planReport{File: p.world.file.Name()}
	bar := newProgress(e)
	defer p.world.making.wait(e, bar)()
	total := len(p.systems) * len(p.fleets)
	for _, s := range p.systems {
		for i := range p.fleets {
			f := &p.fleets[i]
			done := len(report.Frontiers)
			v, err := p.trace(e.Context, s, f, points, func(share float64) {
				bar.show((float64(done)+share)/float64(total), "frontier of "+s.Name)
			})
			if err != nil {
				return err
			}
			report.Frontiers = append(report.Frontiers, *v)
		}
	}
	bar.done()
	if slices.ContainsFunc(report.Frontiers, func(v frontierView) bool { return len(v.Points) > 0 }) {
		return p.write(e, &report, func(dir string) ([]string, error) { return plotFrontiers(dir, p.world, &report) })
	}
	if err := p.write(e, &report, nil); err != nil {
		return err
	}
	return exit(ExitShortOf,
		"there is no frontier: nothing of this demand can be carried; leave out --frontier to see why")
}

// trace plans a frontier.
func (p *planning) trace(ctx context.Context, s systems.System, f *variation, points int,
	progress func(float64)) (*frontierView, error) {
	w, st := f.world, &p.steps[0]
	planner, err := w.newPlanner(s)
	if err != nil {
		return nil, err
	}
	r := plan.Request{Spec: w.Spec, Rates: st.rates}
	if r.Snapshot, err = p.running(ctx, s, f); err != nil {
		return nil, err
	}
	v := &frontierView{
		System: s.Name, WhatIf: f.name, Demand: st.total(), Variants: w.variantNames(), Points: []pointView{},
	}
	add := func(multiple float64, made *plan.Plan) {
		v.Points = append(v.Points, w.point(st.times(multiple), multiple, made))
		progress(float64(len(v.Points)) / float64(points))
	}
	if exact, ok := planner.(*proteus.Planner); ok {
		for x, more := range proteus.Frontier(ctx, exact, r, points) {
			if err = more; err == nil {
				add(x.Multiple, x.Plan)
			}
		}
	} else {
		err = w.sample(ctx, planner, r, points, add)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		v.Error = err.Error()
	}
	slices.Reverse(v.Points)
	return v, nil
}

// times is the demand that many times.
func (s *step) times(multiple float64) *step {
	out := &step{rates: make([]float64, len(s.rates))}
	for a, r := range s.rates {
		out.rates[a] = r * multiple
	}
	return out
}

// point reads a plan as a point of a frontier.
func (w *world) point(st *step, multiple float64, made *plan.Plan) pointView {
	x := planView{Demand: st.total()}
	x.read(w, st, made)
	q := pointView{
		Multiple: multiple, Throughput: x.Served, Bound: x.Bound, Gap: x.Gap,
		Shares: make([]float64, len(w.Spec.Variants)),
	}
	if x.Accuracy != nil {
		q.Accuracy = *x.Accuracy
	}
	for _, a := range x.Apps {
		accuracy := 0.0
		if a.Accuracy != nil {
			accuracy = *a.Accuracy
		}
		q.Apps = append(q.Apps, accuracy)
	}
	sum := 0.0
	for n, i := range made.Instances {
		q.Shares[i.Variants[0].Variant] += x.Instances[n].Rate
		sum += x.Instances[n].Rate
	}
	for i := range q.Shares {
		q.Shares[i] /= max(sum, 1e-12)
	}
	return q
}

// sample plans the frontier of a planner that has none of its own, from the largest multiple that it carries down.
func (w *world) sample(ctx context.Context, planner plan.Planner, r plan.Request, points int,
	add func(float64, *plan.Plan)) error {
	base := step{rates: r.Rates}
	try := func(multiple float64) (*plan.Plan, bool, error) {
		st := base.times(multiple)
		made, err := planner.Plan(ctx, plan.Request{Spec: r.Spec, Snapshot: r.Snapshot, Rates: st.rates})
		if err != nil {
			return nil, false, err
		}
		v := planView{Demand: st.total()}
		v.read(w, st, made)
		return made, !v.lacks(), nil
	}
	// A power of two that is too much, or everything would be enough: nothing here is that fast.
	low, high := 0.0, 1.0
	for ; high < farMultiple; low, high = high, high*2 {
		if _, ok, err := try(high); err != nil {
			return err
		} else if !ok {
			break
		}
	}
	for range halvings {
		mid := (low + high) / 2
		_, ok, err := try(mid)
		if err != nil {
			return err
		}
		if ok {
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

const (
	farMultiple = 1 << 20
	halvings    = 12 // of the last doubling: a part in some thousand
)

// printFrontiers writes the points of each frontier, and how far the last goes.
func printFrontiers(w io.Writer, r *planReport) error {
	low, high := 1.0, 0.0
	for _, v := range r.Frontiers {
		for _, x := range v.Points {
			low, high = min(low, x.Accuracy), max(high, x.Accuracy)
		}
	}
	for n := range r.Frontiers {
		v := &r.Frontiers[n]
		if n > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s\n\n", v.title("system "))
		if len(v.Points) == 0 {
			fmt.Fprintf(w, "no plan: %s\n", cmp.Or(v.Error, "nothing of this mix can be carried"))
			continue
		}
		rows := [][]string{{"OF DEMAND", "THROUGHPUT", "ACCURACY", "", "GAP"}}
		for _, x := range v.Points {
			gap := "-"
			if x.Gap != nil {
				gap = percent(*x.Gap)
			}
			rows = append(rows, []string{
				multipleText(x.Multiple), rateText(x.Throughput), accuracyText(x.Accuracy),
				meter(x.Accuracy, low, high), gap,
			})
		}
		if err := columns(w, "rrrlr", rows); err != nil {
			return err
		}
	}
	return nil
}

// title names a frontier.
func (v *frontierView) title(before string) string {
	if v.WhatIf == "" {
		return before + v.System
	}
	return before + v.System + ", " + v.WhatIf
}

// meter draws a number between two others.
func meter(x, low, high float64) string {
	const cells = 24
	if !(high > low) {
		return ""
	}
	return strings.Repeat("#", 1+int(math.Round((x-low)/(high-low)*(cells-1))))
}

// savePlan writes a report, and what save adds, into a folder and returns the names of the files.
func savePlan(dir string, r any, save func(dir string) ([]string, error)) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	files := []string{filepath.Join(dir, "plan.json")}
	if err := create(files[0], func(w io.Writer) error { return writeJSON(w, r) }); err != nil {
		return nil, err
	}
	if save == nil {
		return files, nil
	}
	more, err := save(dir)
	return append(files, more...), err
}

// plotFrontiers draws the frontiers into a folder.
func plotFrontiers(dir string, w *world, r *planReport) ([]string, error) {
	var list []plot.Frontier
	for n := range r.Frontiers {
		v := &r.Frontiers[n]
		f := plot.Frontier{Name: v.title("")}
		for _, x := range v.Points {
			f.Points = append(f.Points, plot.FrontierPoint{
				Throughput: x.Throughput, Accuracy: x.Accuracy, Apps: x.Apps, Shares: x.Shares,
			})
		}
		if len(f.Points) > 0 {
			list = append(list, f)
		}
	}
	title := "What this fleet gives at every throughput"
	if len(list) == 1 {
		title += ", system " + list[0].Name
	}
	legend := plot.Legend{Demand: r.Frontiers[0].Demand, Apps: w.appNames(), Variants: w.variantNames()}
	for _, x := range w.Spec.Variants {
		legend.Accuracies = append(legend.Accuracies, x.Accuracy)
	}
	fig, err := plot.NewFrontier(title, legend, list)
	if err != nil {
		return nil, err
	}
	files := []string{filepath.Join(dir, "frontier.png"), filepath.Join(dir, "frontier.svg")}
	if err := create(files[0], fig.PNG); err != nil {
		return nil, err
	}
	return files, create(files[1], fig.SVG)
}
