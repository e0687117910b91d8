package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Config is a composition and the world that it works in. Rules keep state, so every engine needs its own.
type Config struct {
	Spec    *serving.Spec   // kept and not changed; a larger one comes as an input
	Profile profile.Profile // believed latencies; the engine shows a learner its batches
	Router  route.Router
	Batcher batch.Rule
	Scaler  scale.Scaler // nil means scale.Fixed
	// Provides lists the sections that plans handed to this engine will carry.
	Provides plan.Sections
	// Attempts is how often a query may run before it has failed, at most 255; 0 means 3.
	Attempts int
	// TurnOff is how long an instance that a plan has dropped stays loaded and idle, so that a later plan can resume it
	// without a load (Scrooge §3.6); 0 stops it at once.
	TurnOff time.Duration
}

// check returns an error when the composition cannot work.
func (c *Config) check() error {
	if c.Spec == nil || c.Profile == nil || c.Router == nil || c.Batcher == nil {
		return errors.New("engine: spec, profile, router and batcher are required")
	}
	if err := c.Spec.Validate(); err != nil {
		return err
	}
	for _, rule := range []struct {
		kind, name string
		needs      plan.Sections
	}{
		{"router", c.Router.Name(), c.Router.Needs()}, {"batcher", c.Batcher.Name(), c.Batcher.Needs()},
		{"scaler", c.Scaler.Name(), c.Scaler.Needs()},
	} {
		if lacks := rule.needs &^ c.Provides; lacks != 0 {
			return fmt.Errorf("engine: %s %q needs the plan's %v, which this planner does not provide: choose "+
				"another planner or %s", rule.kind, rule.name, lacks, rule.kind)
		}
	}
	return Compatible(c.Router, c.Batcher)
}

// Compatible returns an error when a router and a batcher cannot work together.
func Compatible(r route.Router, b batch.Rule) error {
	if b.Traits().NeedsChoice && !r.Traits().Chooses {
		return fmt.Errorf("engine: batcher %q runs the variants that a router chooses, and router %q chooses none: "+
			"choose another batcher or router", b.Name(), r.Name())
	}
	return nil
}
