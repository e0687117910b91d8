// Package later holds the headline claims of systems published since the five papers: Loki, IPA, Symphony, SuperServe
// and PARD. Their texts could not be read, so no figure of theirs is repeated. Each claim is tried in a world of ours
// with models of ours: round numbers of the size that such models have; Loki's claims are tried with its authors'
// models, too. The published number stands beside what is measured, and says no more than which way a result should
// lie.
package later

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

var study = reproduce.Study[*runner]{
	Name: "later", Title: "Later systems: the claims of Loki, IPA, Symphony, SuperServe and PARD in worlds of ours",
	New: func(q reproduce.Request) (*runner, error) { return newRunner(q), nil },
	Figures: []reproduce.Declaration[*runner]{
		{Name: "L1", Declare: lokiCapacity,
			Doc: "Loki: what a fixed cluster carries with accuracy scaling and without; the authors' models too"},
		{Name: "L2", Declare: lokiDay,
			Doc: "Loki: violations, accuracy and machines along a day's load, also with the authors' models"},
		{Name: "I1", Declare: ipaBursts,
			Doc: "IPA: accuracy and machines along bursts, beside cost alone and accuracy alone (modelled times)"},
		{Name: "S1", Declare: symphonyGoodput,
			Doc: "Symphony: goodput of deferred and of eager dispatch, by number of models (modelled models)"},
		{Name: "S2", Declare: symphonyMachines,
			Doc: "Symphony: machines in use and machines needed by load (modelled models)"},
		{Name: "F1", Declare: superServeFixed,
			Doc: "SuperServe: accuracy and attainment beside every fixed variant, by burst (modelled models)"},
		{Name: "P1", Declare: pardOverload,
			Doc: "PARD: goodput and machine time wasted on queries that were late or dropped, by load (modelled)"},
	},
	Notes: []string{"Models are modelled, but for those of Loki's authors: a batch of b takes a base and a time for " +
		"each item, which are ours. " +
		"The published numbers in brackets were measured with other models, machines and loads."},
}

// Paper returns the experiments.
func Paper() reproduce.Paper { return study.Paper() }

// runner collects the runs of the figures.
type runner struct {
	*reproduce.Runner
	quick bool // short runs, for tests
}

func newRunner(r reproduce.Request) *runner { return &runner{Runner: reproduce.NewRunner(r)} }

// span is a length of time, a fifth of it in tests.
func (r *runner) span(full time.Duration) time.Duration {
	if r.quick {
		return full / 5
	}
	return full
}

// runs are the results of a system under a load.
type runs = reproduce.Runs[*outcome]

// simulation adds a run of a system under a load.
func (r *runner) simulation(key string, env *experiment.Environment, s systems.System, l load) runs {
	return reproduce.Add(r.Runner, key, 1, r.Seeds, func(ctx context.Context, seed uint64) (*outcome, error) {
		return simulate(ctx, env, s, l, seed)
	})
}

// carried adds a search for the highest rate that a system carries.
func (r *runner) carried(key string, env *experiment.Environment, s systems.System, l limits, most float64,
	span time.Duration) reproduce.Values {
	return reproduce.All(reproduce.Add(r.Runner, fmt.Sprint(key, " ", s.Name, " ", l), 3, r.Seeds,
		func(ctx context.Context, seed uint64) (float64, error) {
			return mostCarried(ctx, env, s, l, most, r.span(span), seed)
		}))
}

// timesOver divides by what may be 0: it then says how many times a hundredth.
func timesOver(a, b reproduce.Values) reproduce.Values {
	return a.With(b, func(x, y float64) float64 { return x / max(y, 0.01) })
}

func violations(x *outcome) float64 { return x.violations }
func accuracy(x *outcome) float64   { return x.accuracy }
func attained(x *outcome) float64   { return 100 - x.violations }
