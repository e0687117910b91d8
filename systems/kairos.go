package systems

// Kairos and what it was measured against by distributing queries (§7); Ribbon is system fcfs, CLKWRK clkwrk.
var kairosSystems = []System{
	{
		Name: "kairos", Doc: "queries paired with instances of several types so that the worth of the time they take is least",
		Source: "Kairos §5.1", Planner: "static", Router: "matching", Batcher: "single", Scaler: "fixed",
	},
	{
		Name: "drs", Doc: "queries above a size to the base type, the others to cheaper ones", Source: "DeepRecSys, ISCA 2020; Kairos §7 (DRS)",
		Planner: "static", Router: "threshold", Batcher: "single", Scaler: "fixed",
	},
}
