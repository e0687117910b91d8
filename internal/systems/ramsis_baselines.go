package systems

import (
	"github.com/sluice-serving/sluice/papers/loadadaptive"
	"github.com/sluice-serving/sluice/policy/plan"
)

// The baselines of RAMSIS (§7, App. H) and the rule that it argues against (§2.2). They choose by the load alone, or by
// the present batch alone. All variants are loaded on every worker. Workers of the first three share one queue.
var ramsisBaselines = []System{
	{
		Name:   "jellyfish+",
		Doc:    "runs the most accurate variant that carries the load in batches of half the objective",
		Source: "Jellyfish, RTSS 2022; RAMSIS §7", Planner: "jellyfish", Router: "eager", Batcher: "policytable",
		Scaler: fixed,
	},
	{
		Name:   "modelswitching",
		Doc:    "runs the most accurate variant whose simulated response meets the objective at the load",
		Source: "ModelSwitching, HotCloud 2020; RAMSIS §7", Planner: "modelswitching", Router: "eager",
		Batcher: "policytable", Scaler: fixed,
	},
	{
		Name:   "infaas-target",
		Doc:    "runs the fastest variant that reaches the app's accuracy floor",
		Source: "INFaaS, ATC 2021; RAMSIS App. H", Planner: "infaas-target", Router: "eager", Batcher: "policytable",
		Scaler: fixed,
	},
	{
		Name:   "greedy",
		Doc:    "runs all that waits on the most accurate variant that is in time, whatever comes after",
		Source: "RAMSIS §2.2", Planner: "allvariants", Router: "roundrobin", Batcher: "greedy", Scaler: fixed,
	},
}

var loadAdaptivePlanners = plannerTable{
	{
		"jellyfish", "loads all variants everywhere and takes, by the load, the most accurate with enough throughput",
		"Jellyfish, RTSS 2022; RAMSIS §7", newLoadAdaptive(jellyfish),
	},
	{
		"modelswitching", "loads all variants everywhere and takes, by the load, the most accurate whose simulated " +
			"response meets the objective", "ModelSwitching, HotCloud 2020; RAMSIS §7", newLoadAdaptive(modelSwitching),
	},
	{
		"infaas-target", "loads all variants everywhere and takes the fastest that reaches the app's accuracy floor",
		"INFaaS, ATC 2021; RAMSIS App. H", newLoadAdaptive(infaasTarget),
	},
	{
		"allvariants", "loads all variants everywhere and leaves the choice to the batcher", "RAMSIS §2.2",
		newAllVariants,
	},
}

// newLoadAdaptive makes a planner that chooses by the load.
func newLoadAdaptive(rule func(*Planning) loadadaptive.Rule) func(PlannerInputs, Options) (plan.Planner, error) {
	return func(w PlannerInputs, o Options) (plan.Planner, error) {
		return &loadadaptive.Planner{
			Profile: w.Profile, Rule: rule(&o.Planning),
			Options: loadadaptive.Options{Rates: o.Policies.Rates, SingleRate: o.Policies.Known},
		}, nil
	}
}

func jellyfish(p *Planning) loadadaptive.Rule { return loadadaptive.Jellyfish{Headroom: p.Headroom} }

func modelSwitching(*Planning) loadadaptive.Rule {
	return loadadaptive.ModelSwitching{}
}

func infaasTarget(*Planning) loadadaptive.Rule { return loadadaptive.Target{} }

func newAllVariants(w PlannerInputs, _ Options) (plan.Planner, error) {
	return loadadaptive.AllVariants{Profile: w.Profile}, nil
}
