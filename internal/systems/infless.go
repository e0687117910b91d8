package systems

import (
	"time"

	"github.com/sluice-serving/sluice/internal/planner/packing"
	"github.com/sluice-serving/sluice/papers/infless"
	inflessrules "github.com/sluice-serving/sluice/papers/infless/rules"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
)

// INFless, its baselines (§5.1), and infless without one of its ideas each (§5.2, Figure 11).
var inflessSystems = []System{
	packs("infless", "gives every instance a batch size and a part of a machine of its own, packs them tightly, and "+
		"lets idle apps go", "INFless §3.2, §3.4, §3.5", Options{}),
	packs("infless-release", "is infless with instances compared by what they serve alone",
		"INFless, the authors' code", Options{Release: true}),
	keptByDefault(packs("infless-balanced", "is infless packed by the resources that the load makes scarce, with "+
		"rates that are not rounded", "ours", Options{Packing: Packing{Rule: "balanced", Exact: true}})),
	keptByDefault(packs("infless-dense", "is infless-balanced packed onto the fewest machines", "ours",
		Options{Packing: Packing{Rule: "dense", Exact: true}})),
	packs("infless-without-batching", "is infless with batches of one", "INFless §5.2 (without BB)",
		Options{Planning: Planning{Single: true}}),
	packs("infless-without-scheduling", "is infless with the fastest part for each batch size, on the first machine "+
		"with room", "INFless §5.2 (without RS)", Options{Packing: Packing{Fastest: true}}),
	packs("infless-op1.5", "is infless with execution times overestimated by one half", "INFless §5.2 (OP1.5)",
		Options{Packing: Packing{Latency: 1.5}}),
	packs("infless-op2", "is infless with execution times overestimated twofold", "INFless §5.2 (OP2)",
		Options{Packing: Packing{Latency: 2}}),
	openfaas("openfaas+", "runs one query at a time on two threads and 10 % of an accelerator",
		"INFless §5.1 (OpenFaaS+)"),
	mapsOneToOne(openfaas("openfaas+-one-to-one", "is openfaas+ with an instance of its own for each query at once",
		"INFless §2.2, §5.1")),
	aliveFor300s(packs("batch", "fills one batch after the other; all instances of a function have the same batch "+
		"size and part, each on the first machine with room", "BATCH, SC 2020; INFless §5.1",
		Options{Packing: Packing{Uniform: true, First: true, Merge: -1}})),
	aliveFor300s(packs("batch+rs", "is batch with instances packed as infless packs them",
		"INFless §5.3 (BATCH+RS)", Options{Packing: Packing{Uniform: true, Merge: -1}})),
}

var inflessPlanners = plannerTable{
	{
		"infless", "gives each instance a batch size and a part of a machine, and packs them where they serve most " +
			"for what they take", "INFless §3.2, §3.4", newInfless,
	},
}

var inflessRouters = routerTable{
	{
		"bands", "keeps every instance's rate where its batches fill and do not wait for each other", "INFless §3.2",
		func(Options) route.Router { return inflessrules.NewBands() },
	},
}

var inflessScalers = scalerTable{
	{
		ratebands, "plans again when a rate leaves the band that its instances work well in, and lets idle apps " +
			"go", "INFless §3.2, §3.5",
		newRateBands,
	},
}

func packs(name, doc, source string, o Options) System {
	router := "bands"
	if o.Packing.Uniform {
		router = "fcfs" // one queue for all instances of a function
	}
	o.KeepAlive.Rule = lsth // §3.5
	return System{
		Name: name, Doc: doc, Source: source, Planner: "infless", Router: router, Batcher: "filltimeout",
		Scaler: ratebands, Options: o,
	}
}

// aliveFor300s keeps functions for 300 seconds, as OpenFaaS+ and BATCH do: the last instance without calls, and all
// instances after the load has fallen.
func aliveFor300s(s System) System {
	s.Options.KeepAlive.Rule, s.Options.KeepAlive.Linger = "keepalive", inflessrules.Alive
	return s
}

func openfaas(name, doc, source string) System {
	return aliveFor300s(packs(name, doc, source, Options{
		Planning: Planning{Single: true}, Packing: Packing{Threads: 2, Percent: 10, First: true, Merge: -1},
	}))
}

// mapsOneToOne keeps as many instances as there are queries at once, and gives a query to whichever is free (§2.2).
func mapsOneToOne(s System) System {
	s.Router, s.Options.KeepAlive.Mapping, s.Options.Replan = "fcfs", oneToOne, 100*time.Millisecond
	return s
}

// keptByDefault gives a system of ours the keep-alive rule that a system has which names none.
func keptByDefault(s System) System {
	s.Options.KeepAlive.Rule = ""
	return s
}

func newInfless(w PlannerInputs, o Options) (plan.Planner, error) {
	k := &o.Packing
	return infless.New(w.Profile, infless.Options{
		Options: packing.Options{
			Headroom: o.Planning.Headroom, Latency: k.Latency, Merge: k.Merge, Exact: k.Exact, Dense: k.Rule == "dense",
			Single: o.Planning.Single, Threads: k.Threads, Percent: k.Percent, Share: true,
		},
		Balanced: k.Rule == "balanced", Undivided: o.Release, Fastest: k.Fastest, Uniform: k.Uniform, First: k.First,
	}), nil
}
