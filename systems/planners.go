package systems

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/algo/milp"
	"github.com/sluice-serving/sluice/planner/infless"
	"github.com/sluice-serving/sluice/planner/kairos"
	"github.com/sluice-serving/sluice/planner/ramsis"
	"github.com/sluice-serving/sluice/planner/static"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving/profile"
)

// World is what planners know besides what they are asked.
type World struct {
	Profile   profile.Profile
	Solver    milp.Solver       // nil refuses the planners that solve a program
	Placement []static.Instance // as a person wrote it down; for the planner static
	Spread    bool              // stages that Placement leaves out are placed all the same; for the planner static
	Batches   []int             // the batch sizes that may be planned; nil for any
	Policies  ramsis.Store      // keeps policies between runs; nil keeps none
	// Made is told after every policy that was made, for which rate in queries/s; nil for nobody.
	Made func(rate float64)
}

// ErrNoSolver tells that a planner needs World.Solver.
var ErrNoSolver = errors.New("the planner solves a program and has no solver")

type plannerPart struct {
	name, doc string
	make      func(World, Options) (plan.Planner, error)
}

type scalerPart struct {
	name, doc string
	make      func(Options) scale.Scaler
}

var planners = []plannerPart{
	{"static", "the placement that is written down, shares by capacity",
		func(w World, _ Options) (plan.Planner, error) {
			return &static.Planner{Profile: w.Profile, Instances: w.Placement, Spread: w.Spread}, nil
		}},
	{"proteus", "which variant each worker hosts and its share, as a mixed-integer program", newProteus},
	{"ramsis", "every variant everywhere, and policies for choosing among them", newRamsis},
	{"tidal", "every variant everywhere, and what states of the pool are worth", newTidal},
	{"infaas", "which variant each worker hosts, greedily from what runs", newInfaas},
	{
		"jellyfish", "all variants everywhere; by the load, the most accurate whose throughput exceeds it",
		newLoadwise(jellyfish),
	},
	{
		"modelswitching",
		"all variants everywhere; by the load, the most accurate whose simulated response meets the objective",
		newLoadwise(modelSwitching),
	},
	{
		"infaas-target", "all variants everywhere; the fastest that reaches the app's accuracy floor",
		newLoadwise(infaasTarget),
	},
	{"allvariants", "all variants everywhere, and the batcher chooses", newAllVariants},
	{
		"infless", "instances with batch sizes and parts of machines of their own, packed where they serve most for " +
			"what they take", newInfless,
	},
	{
		"scrooge", "types, batch sizes and concurrency for every stage of a graph within one objective, and the " +
			"fewest machines for them", newScrooge,
	},
	{
		"nexus", "an objective for every stage of a graph, and machines shared by the cycles in which batches come " +
			"together", newNexus,
	},
	{"kairos", "which machines to rent under a budget, by upper bounds on what pools serve", newKairos},
}

var scalers = []scalerPart{
	{"fixed", "never plans again", func(Options) scale.Scaler { return scale.Fixed{} }},
	{"periodic", "plans again every interval", func(o Options) scale.Scaler {
		return scale.Replan{Interval: o.Replan, Plain: true}
	}},
	{"replan", "plans again every interval, when the demand bursts and when a worker is lost",
		func(o Options) scale.Scaler {
			return scale.Replan{Interval: o.Replan, Bursts: true}
		}},
	{"uncovered", "plans again when the load exceeds what the plan has policies for, and when a worker is lost",
		func(Options) scale.Scaler {
			return scale.Uncovered{}
		}},
	{"mixshift",
		"plans again when the sizes of queries shift, and when a worker is lost or a price or a latency changes",
		func(o Options) scale.Scaler {
			return scale.NewMixShift(o.Replan)
		}},
	{
		"ratebands",
		"plans again when a rate leaves the band that its instances work well in, and lets apps go that nobody calls",
		newRateBands,
	},
	{"complexity",
		"plans again when the content of queries makes more or less work, when the demand changes and when a worker " +
			"is lost", func(o Options) scale.Scaler {
			return scale.NewComplexity(o.Replan, o.Following.Change)
		}},
	{"arrivals", "plans again every second, and at once when the demand bursts or a worker is lost", newArrivals},
}

// written are the planners that run the placement as it is written down; all others say themselves what an instance
// gets.
var written = []string{"static"}

// Written tells whether a planner runs the placement that is written down.
func Written(planner string) bool { return slices.Contains(written, planner) }

// Planners returns the names of all planners.
func Planners() []string { return names(planners, func(p plannerPart) string { return p.name }) }

// Scalers returns the names of all scalers.
func Scalers() []string { return names(scalers, func(p scalerPart) string { return p.name }) }

// PlannerParts returns all planners.
func PlannerParts() []Part {
	return names(planners, func(p plannerPart) Part { return Part{p.name, p.doc} })
}

// ScalerParts returns all scalers.
func ScalerParts() []Part {
	return names(scalers, func(p scalerPart) Part { return Part{p.name, p.doc} })
}

// NewScaler returns a fresh rule by name; "" is fixed.
func NewScaler(name string, o Options) (scale.Scaler, error) {
	if name == "" {
		name = "fixed"
	}
	at := slices.IndexFunc(scalers, func(p scalerPart) bool { return p.name == name })
	if at < 0 {
		return nil, fmt.Errorf("scaler %q does not exist: use one of %s", name, strings.Join(Scalers(), ", "))
	}
	return scalers[at].make(o), nil
}

// NewPlanner builds a planner by name; "" is static.
func NewPlanner(name string, w World, o Options) (plan.Planner, error) {
	if name == "" {
		name = "static"
	}
	at := slices.IndexFunc(planners, func(p plannerPart) bool { return p.name == name })
	if at < 0 {
		return nil, fmt.Errorf("planner %q does not exist: use one of %s", name, strings.Join(Planners(), ", "))
	}
	if w.Profile == nil {
		return nil, errors.New("a planner needs a profile: measure one with 'sluice profile'")
	}
	return planners[at].make(w, o)
}

func newKairos(w World, o Options) (plan.Planner, error) {
	r := &o.Renting
	if r.Bound != "" && r.Bound != "paper" && r.Bound != "fluid" {
		return nil, fmt.Errorf("planner kairos: option bound is %s, which does not exist: use paper or fluid", r.Bound)
	}
	return &kairos.Planner{
		Profile: w.Profile, Options: kairos.Options{Budget: r.Budget, Fluid: r.Bound == "fluid", Late: r.Late},
	}, nil
}

func newInfless(w World, o Options) (plan.Planner, error) {
	k := &o.Packing
	return &infless.Planner{Profile: w.Profile, Options: infless.Options{
		Headroom: k.Headroom, Latency: k.Latency, Merge: k.Merge, Exact: k.Exact, Balanced: k.Balanced, Dense: k.Dense,
		Undivided: k.Release, Single: k.Single, Fastest: k.Fastest, Uniform: k.Uniform, First: k.First,
		Threads: k.Threads, Percent: k.Percent,
	}}, nil
}

// NewPlanner builds the system's planner.
func (s System) NewPlanner(w World) (plan.Planner, error) { return NewPlanner(s.Planner, w, s.Options) }
