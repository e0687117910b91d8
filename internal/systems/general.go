package systems

// Default is the name of the system that runs where a configuration names none.
const Default = "sluice"

// general are the default system, and those that run a written placement and plan once.
var general = []System{
	{
		Name: Default,
		Doc: "plans which machines are used and what they hold loaded, and runs on every machine the batch, of any " +
			"app and variant, that brings most beyond the worth of the machine's time",
		Source: "ours", Planner: "fluid", Router: "priced", Batcher: "asrouted", Scaler: "anticipate",
	},
	{
		Name:   "sluice-without-planning",
		Doc:    "is sluice with the placement that it begins with",
		Source: "ours, ablation", Planner: asWritten, Router: "priced", Batcher: "asrouted", Scaler: fixed,
	},
	ablation("trials", "is sluice with plans that are not tried before they are adopted",
		Options{Renting: Renting{Trials: -1}}),
	ablation("forecasts", "is sluice with plans for what came in the last seconds alone",
		Options{Planning: Planning{Certain: true}}),
	ablation("sharing", "is sluice with variants of one stage only on each machine",
		Options{Planning: Planning{Apart: true}}),
	ablation("prices", "is sluice with the time of machines costing nothing", Options{Routing: Routing{Free: true}}),
	ablation("cascades", "is sluice with first answers that are the last", Options{Routing: Routing{Final: true}}),
	ablation("waiting", "is sluice with batches that begin at once", Options{Routing: Routing{Eager: true}}),
	{
		Name:   "proteus-batching",
		Doc:    "follows planned shares, and a batch waits as long as its first query can be in time",
		Source: "Proteus §4, §5", Planner: asWritten, Router: "weighted", Batcher: "adaptive", Scaler: fixed,
	},
	{
		Name: "clipper",
		Doc: "follows planned shares, with batches that grow by one while they are in time and shrink by a tenth " +
			"after a late one",
		Source: "Clipper, NSDI 2017, §4.3; Proteus §6.1", Planner: asWritten, Router: "weighted", Batcher: "aimd",
		Scaler: fixed,
	},
	{
		Name: "nexus-batching",
		Doc: "follows planned shares, runs the largest batch that is in time, and drops queries that no batch " +
			"can save",
		Source: "Nexus, SOSP 2019, §4.3; Proteus §6.4", Planner: asWritten, Router: "weighted", Batcher: "earlydrop",
		Scaler: fixed,
	},
	{
		Name:    "triton-like",
		Doc:     "keeps one queue, and runs a batch when it is full or a time-out has passed",
		Source:  "Triton dynamic batcher; INFless §3.2",
		Planner: asWritten, Router: "fcfs", Batcher: "filltimeout", Scaler: fixed,
	},
	{
		Name:   "clkwrk",
		Doc:    "sends each query where it is believed to end first, and runs one at a time",
		Source: "Kairos §7 (CLKWRK)", Planner: asWritten, Router: "earliestfinish", Batcher: "single", Scaler: fixed,
	},
	{
		Name:   "fcfs",
		Doc:    "keeps one queue, and runs one query at a time, on the preferred device type first",
		Source: "Kairos §7 (Ribbon)", Planner: asWritten, Router: "fcfs", Batcher: "single", Scaler: fixed,
		Options: Options{Routing: Routing{Idle: true}},
	},
}

// ablation is the default system with options that leave something of it out, to see what that is worth.
func ablation(without, doc string, o Options) System {
	return System{
		Name: Default + "-without-" + without, Doc: doc, Source: "ours, ablation",
		Planner: "fluid", Router: "priced", Batcher: "asrouted", Scaler: "anticipate", Options: o,
	}
}
