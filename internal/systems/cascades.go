package systems

import (
	cascaderules "github.com/sluice-serving/sluice/papers/cascades/rules"
	"github.com/sluice-serving/sluice/policy/route"
)

// fixedShare is the share of the queries that the fixed cascade answers twice.
const fixedShare = 0.3

// Cascades: a small variant answers first, and a larger one what the small one is not sure of. They run a written
// placement.
var cascadeSystems = []System{
	{
		Name: "cascade",
		Doc: "lets the least accurate variant answer first, and the most accurate one the three tenths of which it " +
			"is least sure",
		Source: "Viola and Jones, CVPR 2001; baseline of CascadeServe", Planner: asWritten, Router: "cascade",
		Batcher: "asrouted", Scaler: fixed,
	},
	{
		Name:   "cascadeserve",
		Doc:    "runs the most accurate cascade that the machines carry at the load of the last second",
		Source: "CascadeServe, arXiv 2406.14424", Planner: asWritten, Router: "cascadeserve", Batcher: "asrouted",
		Scaler: fixed,
	},
	{
		Name: "diffserve",
		Doc: "divides the machines between a light and a heavy variant, so that the heavy one answers as much of " +
			"what the light one is not sure of as they carry",
		Source: "DiffServe, MLSys 2025, arXiv 2411.15381", Planner: asWritten, Router: "diffserve", Batcher: "asrouted",
		Scaler: fixed,
	},
}

var cascadeRouters = routerTable{
	{
		"cascade", "lets the least accurate variant answer first, and the most accurate one what it is least sure of",
		"Viola and Jones, CVPR 2001",
		func(Options) route.Router { return cascaderules.NewFixed(fixedShare) },
	},
	{
		"cascadeserve", "chooses variants and threshold of a cascade by the load", "CascadeServe, arXiv 2406.14424",
		func(Options) route.Router { return cascaderules.NewCascadeServe() },
	},
	{
		"diffserve", "chooses machines and threshold of a light and a heavy variant by the load",
		"DiffServe, MLSys 2025, arXiv 2411.15381",
		func(Options) route.Router { return cascaderules.NewDiffServe() },
	},
}
