package systems

// Kairos: which machines to rent is planned from upper bounds and not tried out (§5.2), again whenever the sizes of
// queries shift; queries wait centrally and are matched with machines (§5.1); latency is learned while serving.
var kairosSystems = []System{
	{
		Name: "kairos", Doc: "the best pool of mixed machines under a budget, and queries matched with them",
		Source: "Kairos §5, §6", Planner: "kairos", Router: "matching", Batcher: "single", Scaler: "mixshift",
		Options: Options{Learn: true},
	},
	{
		Name: "kairos-fluid", Doc: "as kairos, with pools chosen by a linear program over the sizes of queries",
		Source: "Kairos §5.1; the program is ours", Planner: "kairos", Router: "matching", Batcher: "single",
		Scaler:  "mixshift",
		Options: Options{Learn: true, Renting: Renting{Bound: "fluid"}},
	},
	{
		Name: "kairos-schedule",
		Doc: "as kairos-fluid, with queries scheduled ahead on all machines, whose time has the prices of the " +
			"linear program",
		Source: "ours", Planner: "kairos", Router: "schedule", Batcher: "single", Scaler: "mixshift",
		Options: Options{Learn: true, Renting: Renting{Bound: "fluid"}},
	},
	// What Kairos was measured against by how it distributes queries (§7), besides clkwrk and fcfs (Ribbon).
	{
		Name: "drs", Doc: "queries above a size to the base type, the others to cheaper ones",
		Source:  "DeepRecSys, ISCA 2020; Kairos §7 (DRS)",
		Planner: "static", Router: "threshold", Batcher: "single", Scaler: "fixed",
	},
}
