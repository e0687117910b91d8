package host

import (
	"context"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/planner/kairos"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/systems"
)

// known returns what was measured of the spec in force, and the latencies believed of it before anything was learned.
type known func() (serving.Measurements, profile.Profile)

// known implements known for the spec of a configuration, and for what it has grown to in a running server.
func (p *Profiled) known() (serving.Measurements, profile.Profile) {
	if p.growth != nil {
		if g := p.growth.Load(); g != nil {
			return knownOf(g)
		}
	}
	return p.measurements, p.latencies
}

// knownOf is known for a growth that may not be in force yet.
func knownOf(g *engine.Growth) (serving.Measurements, profile.Profile) {
	return g.Measurements, g.Profile
}

// trials implements systems.Trials. It asks at each trial what is known by then: models that were loaded later are run
// with the scatter that was measured of them, like those of the start.
type trials struct {
	system systems.System
	known  known
	open   *serving.Open // the part of the spec that is planned for; nil for all of it
}

// Best implements systems.Trials.
func (t trials) Best(ctx context.Context, c kairos.Contest) (int, error) { return t.now().Best(ctx, c) }

// Try implements systems.Trials.
func (t trials) Try(ctx context.Context, r *plan.Request, p *plan.Plan) (plan.Tried, error) {
	return t.now().Try(ctx, r, p)
}

// now returns the trials of what is known now, in the identifiers of what is open.
func (t trials) now() experiment.Trials {
	m, believed := t.known()
	out := experiment.Trials{System: t.system, Measured: m, Beliefs: believed}
	if t.open == nil {
		return out
	}
	if out.Measured = measuredOpen(m, t.open); believed != nil {
		out.Beliefs = profile.Renumbered{Profile: believed, Variants: t.open.Variants}
	}
	return out
}

// measuredOpen is what was measured of the open variants, in their identifiers. Variants that came after open was made
// are left out, too.
func measuredOpen(m serving.Measurements, open *serving.Open) (out serving.Measurements) {
	renumbered := func(v serving.VariantID) serving.VariantID {
		if int(v) >= len(open.VariantOf) {
			return serving.None
		}
		return open.VariantOf[v]
	}
	for _, x := range m.Latency {
		if x.Variant = renumbered(x.Variant); x.Variant != serving.None {
			out.Latency = append(out.Latency, x)
		}
	}
	for _, x := range m.Load {
		if x.Variant = renumbered(x.Variant); x.Variant != serving.None {
			out.Load = append(out.Load, x)
		}
	}
	return out
}
