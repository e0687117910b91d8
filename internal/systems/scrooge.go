package systems

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/papers/nexus"
	"github.com/sluice-serving/sluice/papers/scrooge"
	scroogerules "github.com/sluice-serving/sluice/papers/scrooge/rules"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
)

// Scrooge (SoCC 2021) and its baselines (§4): graphs of models at the lowest cost within one objective. A query that
// can no longer be in time is dropped before it runs (§3.6).
//
// The systems that follow the paper to the letter send items by the plan's shares; ours send every item to the instance
// on which it is believed to end first. Batches of all start when a slot is free, with what waits: footnote 1 counts a
// wait of one batch before an item's own, and a batch that is held keeps the items of a frame from being in time.
// Inputs that cannot be in time any more are dropped (§3.6).
var scroogeSystems = []System{
	ours(pipelined("scrooge", "plans graphs of models for the cheapest machines, with batches and several of them at "+
		"once", "Scrooge §3; allocation, placement and routing ours", Pipelines{})),
	pipelined("scrooge-written", "is scrooge with the paper's two programs for allocation and best fit for placement",
		"Scrooge §3.3, §3.4", Pipelines{Method: "as-written", Placement: "paper"}),
	pipelined("scrooge-greedy", "is scrooge with greedy allocation and best fit for placement", "Scrooge §4.3",
		Pipelines{Method: "greedy", Placement: "paper"}),
	ours(pipelined("scrooge-single", "is scrooge with one batch at a time", "Scrooge §4.4 (Scrooge-ns)",
		Pipelines{Alone: true})),
	{
		Name: "nexus",
		Doc: "splits the objective of a graph among its stages and shares machines by the cycles in which batches " +
			"come together; all machines count as one type",
		Source: "Nexus, SOSP 2019, §6; Scrooge §4.2", Planner: "nexus", Router: "weighted", Batcher: "earlydrop",
		Scaler: "complexity", Options: Options{Replan: nexusPause},
	},
}

var scroogePlanners = plannerTable{
	{
		"scrooge", "chooses device types, batch sizes and concurrency for every stage of a graph, on the fewest " +
			"machines that meet the objective", "Scrooge §3.3, §3.4", newScrooge,
	},
	{
		"nexus", "gives every stage of a graph an objective of its own, and shares machines by the cycles in which " +
			"batches come together", "Nexus, SOSP 2019, §6; Scrooge §4.2", newNexus,
	},
}

var scroogeScalers = scalerTable{
	{
		"complexity", "plans again when the content of queries makes more or less work, when the demand changes, and " +
			"when a worker is lost or back", "Scrooge §3.5",
		func(o Options) scale.Scaler { return scroogerules.NewComplexity(o.Replan, o.Following.Change) },
	},
}

// nexusPause is the least time between two plans (the release's min_epoch). Nexus also plans at least every 30 s; here
// a plan is made only when something has changed.
const nexusPause = 10 * time.Second

// Head-room of our systems; the paper's have none. The worst latency of §3.3 assumes that items come one by one, but
// those of a frame come together. And a fully used machine never works off a queue.
const (
	scroogeHeadroom = 1.2  // factor on the demand
	scroogeWithin   = 0.85 // of the objective
)

// pipelined is a system as in the paper.
func pipelined(name, doc, source string, o Pipelines) System {
	return System{
		Name: name, Doc: doc, Source: source, Planner: "scrooge", Router: "weighted", Batcher: "earlydrop",
		Scaler: "complexity", Options: Options{Pipelines: o},
	}
}

// ours changes a system to our routing and head-room.
func ours(s System) System {
	s.Router = "earliestfinish"
	s.Options.Pipelines.Within, s.Options.Planning.Headroom = scroogeWithin, scroogeHeadroom
	return s
}

func newScrooge(w PlannerInputs, o Options) (plan.Planner, error) {
	l := &o.Pipelines
	if o.Planning.Select == "least-accurate" {
		return nil, errors.New("planner scrooge: option select is least-accurate: use any or most-accurate")
	}
	out := &scrooge.Planner{Profile: w.Profile, Options: scrooge.Options{
		AsWritten: l.Placement == "paper", Single: l.Alone,
		MostAccurate: o.Planning.Select == "most-accurate", Headroom: o.Planning.Headroom, Within: l.Within,
	}}
	switch method := cmp.Or(l.Method, "exact"); method {
	case "exact":
	case "as-written":
		out.Options.Method = func(ctx context.Context, p *scrooge.Problem) (*scrooge.Allocation, error) {
			return scrooge.AsWritten(ctx, p, nil)
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

func newNexus(w PlannerInputs, o Options) (plan.Planner, error) {
	l := &o.Pipelines
	return &nexus.Planner{
		Profile: w.Profile, Options: nexus.Options{
			Alike: l.Alike, Frontends: l.Frontends, Headroom: o.Planning.Headroom,
		},
	}, nil
}
