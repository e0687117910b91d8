package systems

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// System is a composition by the names of its parts.
type System struct {
	Name    string
	Doc     string // one sentence
	Source  string // paper and section
	Planner string
	Router  string
	Batcher string
	Scaler  string
	Options Options
}

// All lists the systems, in the order in which help shows them.
func All() []System { return slices.Clone(all) }

var all = slices.Concat(general, proteusSystems, baselines, infaasSystems, ramsisSystems, ramsisBaselines, tidalSystems,
	kairosSystems, inflessSystems, scroogeSystems)

// general need no solver.
var general = []System{
	{
		Name: "sluice",
		Doc: "the default: each query where it ends first, on the most accurate variant that lets all that waits " +
			"be in time",
		Source: "ours", Planner: "static", Router: "earliestfinish", Batcher: "mostaccurate", Scaler: "fixed",
	},
	{
		Name: "proteus-batching", Doc: "planned shares and non-work-conserving adaptive batches, without re-planning",
		Source: "Proteus §4, §5", Planner: "static", Router: "weighted", Batcher: "adaptive", Scaler: "fixed",
	},
	{
		Name: "clipper", Doc: "planned shares and additive-increase, multiplicative-decrease batches",
		Source: "Clipper, NSDI 2017, §4.3; Proteus §6.1", Planner: "static", Router: "weighted", Batcher: "aimd",
		Scaler: "fixed",
	},
	{
		Name: "nexus-batching", Doc: "planned shares and early-drop batches",
		Source: "Nexus, SOSP 2019, §4.3; Proteus §6.4", Planner: "static", Router: "weighted", Batcher: "earlydrop",
		Scaler: "fixed",
	},
	{
		Name: "triton-like", Doc: "one queue, batches that fill or time out",
		Source:  "Triton dynamic batcher; INFless §3.2",
		Planner: "static", Router: "fcfs", Batcher: "filltimeout", Scaler: "fixed",
	},
	{
		Name: "clkwrk", Doc: "every query where it ends first, one at a time", Source: "Kairos §7 (CLKWRK)",
		Planner: "static", Router: "earliestfinish", Batcher: "single", Scaler: "fixed",
	},
	{
		Name: "fcfs", Doc: "one queue, one query at a time on the preferred device type", Source: "Kairos §7 (Ribbon)",
		Planner: "static", Router: "fcfs", Batcher: "single", Scaler: "fixed",
		Options: Options{Routing: Routing{Idle: true}},
	},
}

// Names returns the names of all systems.
func Names() []string { return names(all, func(s System) string { return s.Name }) }

// Get returns a system by name.
func Get(name string) (System, error) {
	at := slices.IndexFunc(all, func(s System) bool { return s.Name == name })
	if at < 0 {
		return System{}, fmt.Errorf("system %q does not exist: use one of %s, or name a router and a batcher", name,
			strings.Join(Names(), ", "))
	}
	return all[at], nil
}

// Engine builds a fresh engine of the composition. p is what was measured; nil for nothing, with which only systems
// that learn can begin.
func (s System) Engine(spec *serving.Spec, p profile.Profile, provides plan.Sections) (*engine.Engine, error) {
	sc, err := NewScaler(s.Scaler, s.Options)
	if err != nil {
		return nil, err
	}
	return s.EngineWith(spec, p, provides, sc)
}

// EngineWith builds a fresh engine of the composition with another scaler.
func (s System) EngineWith(spec *serving.Spec, p profile.Profile, provides plan.Sections,
	sc scale.Scaler) (*engine.Engine, error) {
	r, err := NewRouter(s.Router, s.Options)
	if err != nil {
		return nil, err
	}
	b, err := NewBatcher(s.Batcher, s.Options)
	if err != nil {
		return nil, err
	}
	if s.Options.Learn {
		p = profile.NewLearned(spec, p)
	}
	if p == nil {
		return nil, fmt.Errorf("system %q needs a profile: measure one with 'sluice profile', or give the option learn",
			s.Name)
	}
	return engine.New(engine.Config{
		Spec: spec, Profile: p, Router: r, Batcher: b, Scaler: sc, Provides: provides,
		TurnOff: s.Options.Following.TurnOff,
	})
}
