package host

import (
	"errors"
	"time"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/systems"
)

// names are the names of systems, components and options that a sluice.yaml may use.
func names() config.Names {
	return config.Names{Systems: systems.Names(), Routers: systems.Routers(), Batchers: systems.Batchers(),
		Planners: systems.Planners(), Scalers: systems.Scalers(),
		Settings: append(systems.Keys(), "planner", "scaler", "slack"), Refused: refusedOptions}
}

// ParseSystem reads NAME or ROUTER+BATCHER. An error is of kind fault.Usage.
func ParseSystem(name string) (systems.System, error) {
	s, err := systems.Named(name)
	if err != nil {
		return s, fault.Wrap(fault.Usage, err)
	}
	return s, nil
}

// compose makes a system from the system section of a file.
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
	err := s.Set(givenOptions(c))
	return s, err
}

// givenOptions returns the options of a configuration, by name: as texts, or as values of their own types.
func givenOptions(c config.System) map[string]any {
	out := make(map[string]any, len(c.Options))
	for name, text := range c.Options {
		out[name] = text
	}
	if c.Batch > 0 {
		out["batch"] = c.Batch
	}
	if c.Timeout > 0 {
		out["timeout"] = time.Duration(c.Timeout)
	}
	if c.Replan > 0 {
		out["replan"] = time.Duration(c.Replan)
	}
	if c.Budget > 0 {
		out["budget"] = c.Budget
	}
	return out
}

// refusedOptions returns why the system of a configuration refuses some of its options, by their keys below system.
func refusedOptions(c config.System) map[string]string {
	_, err := compose(c)
	var list systems.OptionErrors
	if !errors.As(err, &list) {
		return nil
	}
	out := make(map[string]string, len(list))
	for _, e := range list {
		out[e.Key] = e.Text
	}
	return out
}
