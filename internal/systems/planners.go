package systems

import (
	"cmp"
	"errors"

	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/policy/plan"
)

// asWritten is the planner of systems that name none.
const asWritten = "static"

var planners = []registered[func(PlannerInputs, Options) (plan.Planner, error)]{
	{asWritten, "runs the placement that the configuration writes down, with shares by capacity", "ours", newStatic},
	{
		"proteus", "chooses each worker's variant and share of the queries by a mixed-integer program", "Proteus §4",
		newProteus,
	},
	{
		"ramsis", "loads every variant on every worker and makes policies for choosing among them", "RAMSIS §4",
		newRamsis,
	},
	{
		"tidal", "loads every variant on every worker and computes the worth of every state of the pool", "ours",
		newTidal,
	},
	{
		"infaas", "chooses each worker's variant greedily, beginning with what runs", "INFaaS, ATC 2021, §4.2",
		newInfaas,
	},
	{
		"jellyfish", "loads all variants everywhere and takes, by the load, the most accurate with enough throughput",
		"Jellyfish, RTSS 2022; RAMSIS §7", newLoadwise(jellyfish),
	},
	{
		"modelswitching", "loads all variants everywhere and takes, by the load, the most accurate whose simulated " +
			"response meets the objective", "ModelSwitching, HotCloud 2020; RAMSIS §7", newLoadwise(modelSwitching),
	},
	{
		"infaas-target", "loads all variants everywhere and takes the fastest that reaches the app's accuracy floor",
		"INFaaS, ATC 2021; RAMSIS App. H", newLoadwise(infaasTarget),
	},
	{
		"allvariants", "loads all variants everywhere and leaves the choice to the batcher", "RAMSIS §2.2",
		newAllVariants,
	},
	{
		"infless", "gives each instance a batch size and a part of a machine, and packs them where they serve most " +
			"for what they take", "INFless §3.2, §3.4", newInfless,
	},
	{
		"scrooge", "chooses device types, batch sizes and concurrency for every stage of a graph, on the fewest " +
			"machines that meet the objective", "Scrooge §3.3, §3.4", newScrooge,
	},
	{
		"nexus", "gives every stage of a graph an objective of its own, and shares machines by the cycles in which " +
			"batches come together", "Nexus, SOSP 2019, §6; Scrooge §4.2", newNexus,
	},
	{
		"fluid", "chooses which machines are used and what each holds loaded, by a linear program over their time, " +
			"and tries plans before they are adopted", "ours", newFluid,
	},
	{
		"kairos", "chooses which machines to rent under a budget, by upper bounds on what pools serve", "Kairos §5.2",
		newKairos,
	},
	{
		"resident", "loads every variant that fits on every worker, for batches as long as the objective allows",
		"SuperServe, NSDI 2025", newResident,
	},
	{
		"replicated", "loads every stage on every worker, to run the most accurate variant that carries the demand, " +
			"on as many rented machines as that takes", "Symphony, arXiv 2308.07470", newReplicated,
	},
	{
		"ipa", "chooses one variant, one batch size and a number of workers for each stage by an integer program",
		"IPA, JSys 2024", newIPA,
	},
	{
		"loki", "chooses variants by paths through a pipeline: the fewest machines with the most accurate ones, or " +
			"the highest accuracy on all machines", "Loki, HPDC 2024", newLoki,
	},
}

// Written reports whether a planner runs the written placement: static does, and "" means static. All others decide the
// settings of each instance themselves.
func Written(planner string) bool { return cmp.Or(planner, asWritten) == asWritten }

// Planners returns the names of all planners.
func Planners() []string { return namesOf(planners) }

// NewPlanner builds a planner by name; "" is static. It fails when the world has no profile, and with ErrNoSolver when
// the planner needs a solver and the world has none.
func NewPlanner(name string, w PlannerInputs, o Options) (plan.Planner, error) {
	fresh, err := find(Planner, planners, cmp.Or(name, asWritten))
	if err != nil {
		return nil, err
	}
	if w.Profile == nil {
		return nil, errors.New("a planner needs a profile: measure one with 'sluice profile'")
	}
	return fresh(w, o)
}

// NewPlanner builds the system's planner.
func (s System) NewPlanner(w PlannerInputs) (plan.Planner, error) {
	if b, err := NewBatcher(s.Batcher, s.Options); err == nil {
		w.ByDemand, w.Unbatched = !b.Traits().Chooses, b.Traits().Unbatched
	}
	if r, err := NewRouter(s.Router, s.Options); err == nil {
		w.Pooled = r.Traits().Global
	}
	return NewPlanner(s.Planner, w, s.Options)
}

func newStatic(w PlannerInputs, _ Options) (plan.Planner, error) {
	return &static.Planner{
		Profile: w.Profile, Instances: w.Placement, Proposed: w.Proposed, ByDemand: w.ByDemand,
		Unbatched: w.Unbatched, Pooled: w.Pooled, Spread: w.Spread,
	}, nil
}
