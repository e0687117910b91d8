package systems

import (
	"github.com/sluice-serving/sluice/planner/loadwise"
	"github.com/sluice-serving/sluice/policy/plan"
)

// What RAMSIS was measured against (§7, App. H) and what it argues against (§2.2): selection by the load alone, and by
// nothing but the batch at hand. All variants are loaded on every worker; workers of the first three take from one
// queue.
var ramsisBaselines = []System{
	{
		Name: "jellyfish+", Doc: "the most accurate variant that carries the load in batches of half the objective",
		Source: "Jellyfish, RTSS 2022; RAMSIS §7", Planner: "jellyfish", Router: "eager", Batcher: "policytable",
		Scaler: "fixed",
	},
	{
		Name:   "modelswitching",
		Doc:    "the most accurate variant whose simulated response latency meets the objective at the load",
		Source: "ModelSwitching, HotCloud 2020; RAMSIS §7", Planner: "modelswitching", Router: "eager",
		Batcher: "policytable", Scaler: "fixed",
	},
	{
		Name: "infaas-target", Doc: "the fastest variant that reaches the app's accuracy floor",
		Source: "INFaaS, ATC 2021; RAMSIS App. H", Planner: "infaas-target", Router: "eager", Batcher: "policytable",
		Scaler: "fixed",
	},
	{
		Name: "greedy", Doc: "all that waits on the most accurate variant that is in time, whatever comes after",
		Source: "RAMSIS §2.2", Planner: "allvariants", Router: "roundrobin", Batcher: "greedy", Scaler: "fixed",
	},
}

// newLoadwise makes a planner that chooses by the load.
func newLoadwise(rule func(*Planning) loadwise.Rule) func(World, Options) (plan.Planner, error) {
	return func(w World, o Options) (plan.Planner, error) {
		rates, err := o.Policies.rates()
		if err != nil {
			return nil, err
		}
		return &loadwise.Planner{
			Profile: w.Profile, Rule: rule(&o.Planning),
			Options: loadwise.Options{Rates: rates, SingleRate: o.Policies.Alone},
		}, nil
	}
}

func jellyfish(p *Planning) loadwise.Rule { return loadwise.Jellyfish{Headroom: p.Headroom} }

func modelSwitching(*Planning) loadwise.Rule {
	return loadwise.ModelSwitching{}
}

func infaasTarget(*Planning) loadwise.Rule { return loadwise.Target{} }

func newAllVariants(w World, _ Options) (plan.Planner, error) {
	return loadwise.AllVariants{Profile: w.Profile}, nil
}
