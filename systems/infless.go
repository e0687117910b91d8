package systems

import "github.com/sluice-serving/sluice/policy/scale"

// INFless and what it was measured against (§5.1), with the parts of it that are left out one by one (§5.2, Figure 11).
var inflessSystems = []System{
	packing("infless", "batches and parts of machines of every instance's own, packed tightly",
		"INFless §3.2, §3.4, §3.5", Packing{}),
	packing("infless-release", "as infless, with instances compared by what they serve alone",
		"INFless, the authors' code", Packing{Release: true}),
	packing("infless-balanced", "as infless, packed by what the load makes scarce, with rates that are not rounded",
		"ours", Packing{Balanced: true, Exact: true}),
	packing("infless-dense", "as infless-balanced, onto the fewest machines", "ours",
		Packing{Dense: true, Exact: true}),
	packing("infless-without-batching", "as infless, with batches of one", "INFless §5.2 (without BB)",
		Packing{Single: true}),
	packing("infless-without-scheduling",
		"as infless, with the fastest part for each batch size on the first machine with room",
		"INFless §5.2 (without RS)", Packing{Fastest: true}),
	packing("infless-op1.5", "as infless, with execution times believed half as long again", "INFless §5.2 (OP1.5)",
		Packing{Latency: 1.5}),
	packing("infless-op2", "as infless, with execution times believed twice as long", "INFless §5.2 (OP2)",
		Packing{Latency: 2}),
	fixed(packing("openfaas+", "one query at a time on two threads and 10 % of an accelerator",
		"INFless §5.1 (OpenFaaS+)", Packing{Single: true, Threads: 2, Percent: 10, First: true, Merge: -1})),
	fixed(packing("batch",
		"batches filled over the top, one size and part for all instances of a function, on the first machine "+
			"with room",
		"BATCH, SC 2020; INFless §5.1", Packing{Uniform: true, First: true, Merge: -1})),
	fixed(packing("batch+rs", "as batch, with instances packed as by infless", "INFless §5.3 (BATCH+RS)",
		Packing{Uniform: true, Merge: -1})),
}

func packing(name, doc, source string, o Packing) System {
	router := "bands"
	if o.Uniform {
		router = "fcfs" // one buffer for all instances of a function
	}
	return System{
		Name: name, Doc: doc, Source: source, Planner: "infless", Router: router, Batcher: "filltimeout",
		Scaler: "ratebands", Options: Options{Packing: o},
	}
}

// fixed keeps functions for 300 seconds, as OpenFaaS+ and BATCH do, down to the last instance and all that a fallen
// load needs no more.
func fixed(s System) System {
	s.Options.Keeping.Rule, s.Options.Keeping.Linger = "keepalive", scale.Alive
	return s
}
