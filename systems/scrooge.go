package systems

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/planner/nexus"
	"github.com/sluice-serving/sluice/planner/scrooge"
	"github.com/sluice-serving/sluice/policy/plan"
)

// Scrooge (SoCC 2021) and what it was measured against (§4): graphs of models at the lowest cost within one objective.
// What cannot be in time any more is dropped before it runs (§3.6).
//
// As the paper writes it, items follow the plan's shares, and a batch is run when it is full, or when it must for its
// first query to keep its stage's part of the objective, with what there is: real streams do not fill every batch in
// the time that the plan counts on. Ours sends every item where it is believed to be done first and lets no machine
// wait: the items of a frame come together, and a frame is in time only if all of them are.
var scroogeSystems = []System{
	pipelined("scrooge", "graphs of models on the cheapest machines, with batches and several of them at once",
		"Scrooge §3; allocation, placement and routing ours", Pipelines{}),
	pipelined("scrooge-written", "as scrooge, allocated by the paper's two programs and placed by best fit",
		"Scrooge §3.3, §3.4", Pipelines{Method: "as-written", Placement: "paper"}),
	pipelined("scrooge-greedy", "as scrooge, allocated greedily and placed by best fit", "Scrooge §4.3",
		Pipelines{Method: "greedy", Placement: "paper"}),
	pipelined("scrooge-single", "as scrooge, with one batch at a time", "Scrooge §4.4 (Scrooge-ns)",
		Pipelines{Alone: true}),
	{
		Name: "nexus",
		Doc: "graphs of models split into models, packed by the cycles in which their batches come together; " +
			"machines count as one type",
		Source: "Nexus, SOSP 2019, §6; Scrooge §4.2", Planner: "nexus", Router: "weighted", Batcher: "earlydrop",
		Scaler: "complexity", Options: Options{Replan: nexusPause},
	},
}

// nexusPause is the least time between two plans of Nexus's (the release's min_epoch), which a change of the load that
// a beacon reports each second may cause; an epoch of 30 s passes otherwise. Here a plan is made when something has
// changed, and not every 30 s when nothing has.
const nexusPause = 10 * time.Second

// Ours: what is planned for beside what is asked. The worst latency of §3.3 has items come one by one and machines
// carry all that they can; items of a frame come together, and where each machine is full, what has fallen behind once
// is never caught up with. What is as the paper writes it does without.
const (
	scroogeHeadroom = 1.2  // of the demand
	scroogeWithin   = 0.85 // of the objective
)

func pipelined(name, doc, source string, o Pipelines) System {
	s := System{
		Name: name, Doc: doc, Source: source, Planner: "scrooge", Router: "weighted", Batcher: "adaptive",
		Scaler: "complexity",
	}
	if o.Placement != "paper" {
		o.Within, s.Options.Planning.Headroom = scroogeWithin, scroogeHeadroom
		s.Router, s.Batcher = "earliestfinish", "earlydrop"
	}
	s.Options.Pipelines = o
	return s
}

func newScrooge(w World, o Options) (plan.Planner, error) {
	l := &o.Pipelines
	out := &scrooge.Planner{Profile: w.Profile, Options: scrooge.Options{
		AsWritten: l.Placement == "paper", Single: l.Alone || o.Planning.Single,
		MostAccurate: o.Planning.Select == "most-accurate", Headroom: o.Planning.Headroom, Within: l.Within,
	}}
	switch method := cmp.Or(l.Method, "exact"); method {
	case "exact":
	case "as-written":
		if w.Solver == nil {
			return nil, fmt.Errorf("planner scrooge, method as-written: %w", ErrNoSolver)
		}
		out.Options.Method = func(ctx context.Context, p *scrooge.Problem) (*scrooge.Allocation, error) {
			return scrooge.AsWritten(ctx, p, w.Solver)
		}
	case "greedy":
		out.Options.Method = func(_ context.Context, p *scrooge.Problem) (*scrooge.Allocation, error) {
			return scrooge.Greedy(p)
		}
	case "brute":
		out.Options.Method = scrooge.BruteForce
	default:
		return nil, fmt.Errorf("planner scrooge: option method is %s, which does not exist: use exact, as-written, "+
			"greedy or brute", method)
	}
	return out, nil
}

func newNexus(w World, o Options) (plan.Planner, error) {
	l := &o.Pipelines
	return &nexus.Planner{
		Profile: w.Profile, Options: nexus.Options{
			Alike: l.Alike, Frontends: l.Frontends, Headroom: o.Planning.Headroom,
		},
	}, nil
}
