package systems

import (
	pardrules "github.com/sluice-serving/sluice/papers/pard/rules"
	"github.com/sluice-serving/sluice/policy/route"
)

// PARD (EuroSys 2026): queries of a pipeline are dropped as soon as they are believed to be late at its end. Which
// machines run what is not its subject; here it has the plans of Nexus, with which the paper compares it.
var pardSystems = []System{
	{
		Name: "pard",
		Doc: "is nexus, but drops queries by what the stages before and behind are believed to take, and serves " +
			"those with the most time left first while more come than a stage carries",
		Source: "PARD, EuroSys 2026, arXiv 2602.08747", Planner: "nexus", Router: "proactive", Batcher: "asrouted",
		Scaler: "complexity", Options: Options{Replan: nexusPause},
	},
}

var pardRouters = routerTable{
	{
		"proactive", "keeps one queue for each stage, leaves out queries that are believed to be late at the end of " +
			"their pipeline, and serves those with the most time left first under overload",
		"PARD, EuroSys 2026, arXiv 2602.08747", func(Options) route.Router { return pardrules.NewProactive() },
	},
}
