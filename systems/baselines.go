package systems

// The systems that Proteus was measured against (§6.1.1). Clipper has no planner: the paper gave it a plan made once,
// by the same program, with the least accurate (HT) or the most accurate (HA) variant of each app; Sommelier swaps
// variants where they are.
var baselines = []System{
	{
		Name: "clipper-ht", Doc: "the least accurate variants, placed once for throughput; AIMD batches",
		Source: "Clipper, NSDI 2017; Proteus §6.1.1", Planner: "proteus", Router: "weighted", Batcher: "aimd",
		Scaler:  "fixed",
		Options: Options{Planning: Planning{Select: "least-accurate", Goal: "throughput"}},
	},
	{
		Name: "clipper-ha", Doc: "the most accurate variants, placed once for throughput; AIMD batches",
		Source: "Clipper, NSDI 2017; Proteus §6.1.1", Planner: "proteus", Router: "weighted", Batcher: "aimd",
		Scaler:  "fixed",
		Options: Options{Planning: Planning{Select: "most-accurate", Goal: "throughput"}},
	},
	{
		Name: "sommelier", Doc: "variants change with the demand, the workers of each app do not",
		Source: "Sommelier, SIGMOD 2022; Proteus §6.1.1", Planner: "proteus", Router: "weighted", Batcher: "adaptive",
		Scaler:  "replan",
		Options: Options{Replan: proteusInterval, Planning: Planning{Place: "fixed"}},
	},
}
