package systems

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// System is a composition by the names of its components.
type System struct {
	Name    string
	Doc     string // the rest of a sentence that begins with the name
	Source  string // paper and section
	Planner string // "" means static
	Router  string
	Batcher string
	Scaler  string // "" means fixed
	Options Options
}

// All lists the systems in the order of help texts. The slice is the caller's.
func All() []System { return slices.Clone(all) }

var all = slices.Concat(general, proteusSystems, baselines, infaasSystems, ramsisSystems, ramsisBaselines, tidalSystems,
	kairosSystems, inflessSystems, scroogeSystems, superServeSystems, ipaSystems, lokiSystems, symphonySystems,
	pardSystems, cascadeSystems)

// Names returns the names of all systems.
func Names() []string { return each(all, func(s System) string { return s.Name }) }

// Get returns a system by name.
func Get(name string) (System, error) {
	at := slices.IndexFunc(all, func(s System) bool { return s.Name == name })
	if at < 0 {
		return System{}, fmt.Errorf("%w, or name a router and a batcher", unknown("system", name, Names()))
	}
	return all[at], nil
}

// Engine builds a new engine of the composition. p are the measured latencies; nil is allowed for systems that learn.
// provides lists the sections of plans to come.
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
