// Package bounds puts the fluid bound (package bound) beside a simulated run: the most that any run could have had with
// these arrivals and these machines. A watch stands between the run and its load and machines. It notes every arrival,
// and how much faster than on average the batches were that the run happened to draw, so that the bound has luck in it.
package bounds

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/measure/bound"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// Watch notes what the bound of a run needs. It is of one run.
type Watch struct {
	spec     *serving.Spec
	machines *truth.Table
	queries  []bound.Query
	items    map[brought][]float64
	even     *truth.Even // of the content of queries; nil where it is the same for all queries of a size
	mean     []float64   // by device type: sum of the mean times of the batches that ran, in ns
	took     []float64   // the times that they took
	scatter  bool        // some batch did not take its mean
}

// brought is what the items of a query at the stages of its app depend on.
type brought struct {
	app   serving.AppID
	items int32
}

// NewWatch returns a watch over a run on the given machines. It keeps both.
func NewWatch(spec *serving.Spec, machines *truth.Table) *Watch {
	w := &Watch{
		spec: spec, machines: machines, items: make(map[brought][]float64),
		mean: make([]float64, len(spec.DeviceTypes)), took: make([]float64, len(spec.DeviceTypes)),
	}
	if truth.Fractional(spec) {
		w.even = truth.NewEven(spec)
	}
	return w
}

// Source returns src, whose arrivals the watch notes as they are taken.
func (w *Watch) Source(src workload.Source) workload.Source { return &watchedSource{src, w} }

type watchedSource struct {
	workload.Source
	watch *Watch
}

// Next implements workload.Source.
func (s *watchedSource) Next() (workload.Arrival, bool) {
	a, ok := s.Source.Next()
	if ok {
		s.watch.Arrived(&a)
	}
	return a, ok
}

// Arrived notes an arrival. Those of apps that the spec does not have are left out: nothing can serve them.
func (w *Watch) Arrived(a *workload.Arrival) {
	if a.App < 0 || int(a.App) >= len(w.spec.Apps) {
		return
	}
	limit := a.Timeout
	if limit <= 0 {
		limit = w.spec.Apps[a.App].SLO.Latency
	}
	w.queries = append(w.queries, bound.Query{
		App: a.App, Arrived: a.At, Deadline: a.At.Add(limit), Items: w.itemsOf(a), Length: a.Length,
		MinAccuracy: a.MinAccuracy, Variant: a.Variant,
	})
}

// Machines returns the machines, whose batches the watch notes.
func (w *Watch) Machines() truth.Model { return &watchedMachines{w.machines, w} }

type watchedMachines struct {
	*truth.Table
	watch *Watch
}

// Draw implements truth.Model. Every batch is drawn once, when it begins.
func (m *watchedMachines) Draw(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) float64 {
	drawn := m.Table.Draw(v, d, items, concurrency)
	if mean, ok := m.Mean(v, d, items, concurrency); ok {
		took := m.Service(v, d, items, concurrency, drawn)
		m.watch.mean[d] += float64(mean)
		m.watch.took[d] += float64(took)
		m.watch.scatter = m.watch.scatter || took != mean
	}
	return drawn
}

// Queries are the arrivals so far. They are shared: do not change them.
func (w *Watch) Queries() []bound.Query { return w.queries }

// Model is the machines and apps of the run. Batches are as fast as they turned out to be, all of a device type
// together.
func (w *Watch) Model() bound.Model {
	out := Model(w.spec, w.machines)
	if !w.scatter {
		return out
	}
	out.Speed = make([]float64, len(w.took))
	for d := range w.took {
		out.Speed[d] = 1
		if w.took[d] > 0 {
			out.Speed[d] = w.mean[d] / w.took[d]
		}
	}
	return out
}

// Model is machines and apps as a bound sees them.
func Model(spec *serving.Spec, machines *truth.Table) bound.Model {
	out := bound.Model{Spec: spec, Time: machines.Mean, Chance: machines.Chance, Levels: machines.Levels}
	if machines.Stretches() {
		out.LongTime, out.LongChance = machines.LongMean, machines.LongChance
	}
	return out
}

// Tolerance is by how much, relatively, the run may be above its bound by chance. The bound knows how fast the batches
// were, but not that more of them than on average were in time. That share of the queries has a standard deviation of
// at most half of 1/sqrt(queries). Runs whose batches took their means have no luck.
func (w *Watch) Tolerance() float64 {
	switch {
	case len(w.queries) == 0:
		return 0
	case w.scatter:
		return min(2/math.Sqrt(float64(len(w.queries))), mostTolerance)
	case slices.ContainsFunc(w.spec.Stages, func(s serving.Stage) bool { return len(s.Confidences) > 0 }):
		// Which queries a variant is sure of is chance, too: some more of those that it answered first than of all.
		return min(0.25/math.Sqrt(float64(len(w.queries))), mostTolerance)
	}
	return 0
}

// mostTolerance holds for runs of a few thousand queries and less.
const mostTolerance = 0.03

// Terms bounds the program of one run, so that it is solved in about a second. A larger one is made coarser.
const Terms = 20_000

// ForesightTerms is Terms for the bound by foresight, which is solved in ten seconds and more.
const ForesightTerms = 100_000

// Foresight returns the options of the bound by foresight.
func Foresight() bound.Options { return bound.Options{Foresight: true, Terms: ForesightTerms} }

// Fluid returns the options of the fluid bound.
func Fluid() bound.Options { return bound.Options{Terms: Terms} }

// Utility computes the bound of the run so far. A program that is too large even when it is coarse is no error: the
// answer says that it was skipped, and why.
func (w *Watch) Utility(ctx context.Context, solver milp.Solver, o bound.Options) (*report.Bound, error) {
	r, err := bound.Utility(ctx, solver, w.Model(), w.queries, o)
	if errors.Is(err, bound.ErrTooLarge) {
		return &report.Bound{Skipped: err.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	out := &report.Bound{
		Utility: r.Utility, InTime: r.InTime, Tolerance: w.Tolerance(), WindowS: r.Window.Seconds(),
	}
	for _, x := range r.Windows {
		out.Windows = append(out.Windows, report.BoundWindow{
			AtS: x.Start.Seconds(), Offered: x.Offered, Utility: x.Utility,
		})
	}
	return out, nil
}

// Cost returns the least money, in $/h over a span, for which queries are served as many and as accurately as a run
// did. Machines of Rented types are rented when they are needed, and nothing else costs. Nil where nothing is rented,
// and where the run served so much that only luck or a fault explains it.
func (w *Watch) Cost(ctx context.Context, solver milp.Solver, served *report.Report,
	span time.Duration) (*float64, error) {
	rent := Rented(w.spec)
	if rent == nil || span <= 0 {
		return nil, nil
	}
	rent.LateOf, rent.Target = make([]float64, len(w.spec.Apps)), make([]float64, len(w.spec.Apps))
	for a := range w.spec.Apps {
		s := &served.Apps[a].Summary
		if s.Offered > 0 {
			rent.LateOf[a] = 1 - float64(s.InTime)/float64(s.Offered)*(1-1e-9)
		}
		if s.SatisfiedAccuracy != nil {
			rent.Target[a] = *s.SatisfiedAccuracy * (1 - 1e-9)
		}
	}
	cost, over, err := bound.CostOver(ctx, solver, w.Model(), w.queries, *rent,
		Fluid())
	if errors.Is(err, bound.ErrTooLittle) || errors.Is(err, bound.ErrTooLarge) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cost *= over.Seconds() / span.Seconds()
	return &cost, nil
}

// Rented says that every device type with a price is rented unless its tenure is owned: owned machines are paid for
// whether they are used or not. It returns nil where none is rented.
func Rented(spec *serving.Spec) *bound.Rent {
	out := &bound.Rent{Rented: make([]bool, len(spec.DeviceTypes))}
	any := false
	for d := range spec.DeviceTypes {
		x := &spec.DeviceTypes[d]
		out.Rented[d] = x.PricePerHour > 0 && !x.Part && x.Tenure != serving.Owned
		any = any || out.Rented[d]
	}
	if !any {
		return nil
	}
	return out
}
