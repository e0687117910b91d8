package systems

// The baselines of Proteus (§6.1.1). Clipper has no planner: the paper gave it a plan made once, by the same program,
// with the least accurate (HT) or the most accurate (HA) variant of each app. Sommelier changes variants and keeps apps
// in place.
var baselines = []System{
	{
		Name:   "clipper-ht",
		Doc:    "places the least accurate variants once, for throughput, with the batches of clipper",
		Source: "Clipper, NSDI 2017; Proteus §6.1.1", Planner: "proteus", Router: "weighted", Batcher: "aimd",
		Scaler:  fixed,
		Options: Options{Planning: Planning{Select: "least-accurate", Goal: "throughput"}},
	},
	{
		Name:   "clipper-ha",
		Doc:    "places the most accurate variants once, for throughput, with the batches of clipper",
		Source: "Clipper, NSDI 2017; Proteus §6.1.1", Planner: "proteus", Router: "weighted", Batcher: "aimd",
		Scaler:  fixed,
		Options: Options{Planning: Planning{Select: "most-accurate", Goal: "throughput"}},
	},
	{
		Name:   "sommelier",
		Doc:    "changes variants with the demand; every worker keeps its app",
		Source: "Sommelier, SIGMOD 2022; Proteus §6.1.1", Planner: "proteus", Router: "weighted", Batcher: "adaptive",
		Scaler:  "replan",
		Options: Options{Replan: proteusInterval, Planning: Planning{Place: "fixed"}},
	},
}
