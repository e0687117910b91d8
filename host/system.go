package host

import (
	"strings"
	"time"

	"github.com/sluice-serving/sluice/config"
	"github.com/sluice-serving/sluice/host/fault"
	"github.com/sluice-serving/sluice/systems"
)

// names are the names of systems, parts and options that a sluice.yaml may use.
func names() config.Names {
	return config.Names{Systems: systems.Names(), Routers: systems.Routers(), Batchers: systems.Batchers(),
		Planners: systems.Planners(), Scalers: systems.Scalers(),
		Settings: append([]string{
			"batch", "timeout", "planner", "scaler", "replan", "slack", "budget",
		}, systems.Settings("options.")...)}
}

// ParseSystem reads NAME or ROUTER+BATCHER. An error is of kind fault.Usage.
func ParseSystem(name string) (systems.System, error) {
	c := config.System{Name: name}
	if r, b, ok := strings.Cut(name, "+"); ok {
		c = config.System{Router: r, Batcher: b}
	}
	s, err := compose(c)
	if err != nil {
		return s, fault.Wrap(fault.Usage, err)
	}
	return s, nil
}

// compose makes a system of the system section of a file.
func compose(c config.System) (systems.System, error) {
	s := systems.System{Name: c.Router + "+" + c.Batcher, Router: c.Router, Batcher: c.Batcher}
	if c.Router == "" && c.Batcher == "" {
		var err error
		if s, err = systems.Get(c.Name); err != nil {
			return s, err
		}
	}
	if c.Planner != "" {
		s.Planner = c.Planner
	}
	if c.Scaler != "" {
		s.Scaler = c.Scaler
	}
	o := &s.Options
	if c.Batch > 0 {
		o.BatchSize = c.Batch
	}
	if c.Timeout > 0 {
		o.Timeout = time.Duration(c.Timeout)
	}
	if c.Replan > 0 {
		o.Replan = time.Duration(c.Replan)
	}
	o.Renting.Budget = c.Budget
	return s, o.Set(c.Options)
}
