package plan

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/serving"
)

// Validate reports the first thing about p that spec or the plan's own rules forbid. Engines refuse a plan that it
// refuses.
func (p *Plan) Validate(spec *serving.Spec) error {
	for n := range p.Instances {
		if err := p.Instances[n].validate(spec); err != nil {
			return fmt.Errorf("plan of %s, instance %d: %w", p.Planner, n, err)
		}
	}
	if err := p.partsFit(spec); err != nil {
		return err
	}
	for i := range p.Policies {
		if err := p.Policies[i].validate(spec); err != nil {
			return fmt.Errorf("plan of %s, policies %d: %w", p.Planner, i, err)
		}
	}
	for i := range p.Values {
		if err := p.Values[i].validate(spec); err != nil {
			return fmt.Errorf("plan of %s, value functions %d: %w", p.Planner, i, err)
		}
	}
	if err := p.validateRates(spec); err != nil {
		return fmt.Errorf("plan of %s: %w", p.Planner, err)
	}
	if p.Budgets != nil && len(p.Budgets) != len(spec.Stages) {
		return fmt.Errorf("plan of %s: %d budgets for %d stages", p.Planner, len(p.Budgets), len(spec.Stages))
	}
	return nil
}

func (i *Instance) validate(spec *serving.Spec) error {
	if i.Worker < 0 || int(i.Worker) >= len(spec.Workers) {
		return fmt.Errorf("worker %d does not exist", i.Worker)
	}
	if i.Stage < 0 || int(i.Stage) >= len(spec.Stages) {
		return fmt.Errorf("stage %d does not exist", i.Stage)
	}
	if a := int(spec.Stages[i.Stage].App); a < len(spec.Apps) && spec.Apps[a].Closed {
		return fmt.Errorf("app %q is closed", spec.Apps[a].Name)
	}
	if i.Slots < 1 {
		return fmt.Errorf("slots is %d, want at least 1", i.Slots)
	}
	if d := int(i.Part) - 1; i.Part < 0 || d >= len(spec.DeviceTypes) || d >= 0 && !spec.DeviceTypes[d].Part {
		return fmt.Errorf("part %d is not 1 + the number of a device type that is a part", i.Part)
	}
	if n := spec.DeviceTypes[spec.Workers[i.Worker].DeviceType].Accelerators; i.Accelerator < 0 ||
		i.Accelerator > 0 && int(i.Accelerator) >= n {
		return fmt.Errorf("accelerator %d does not exist, its worker has %d", i.Accelerator, n)
	}
	if c := spec.DeviceTypes[spec.Workers[i.Worker].DeviceType].Cores; i.TimeShared && (i.Part > 0 ||
		i.Cores > 0 && i.Cores < c) {
		return fmt.Errorf("takes turns on its worker, and has a part of it, or %d of its %d cores, for itself", i.Cores,
			c)
	}
	if !(i.Low >= 0 && i.Low <= i.Up) || math.IsInf(i.Up, 0) {
		return fmt.Errorf("rates from %v to %v, want 0 <= low <= up", i.Low, i.Up)
	}
	if !(i.Share >= 0) {
		return fmt.Errorf("share is %v, want at least 0", i.Share)
	}
	if len(i.Variants) == 0 {
		return fmt.Errorf("has no variant")
	}
	for _, v := range i.Variants {
		if v.Variant < 0 || int(v.Variant) >= len(spec.Variants) || spec.Variants[v.Variant].Stage != i.Stage {
			return fmt.Errorf("variant %d does not belong to stage %q", v.Variant, spec.Stages[i.Stage].Name)
		}
		if most := spec.Variants[v.Variant].MaxBatch; v.Limit < 1 || v.Limit > most {
			return fmt.Errorf("batch limit of %q is %d, want 1 to %d", spec.Variants[v.Variant].Name, v.Limit, most)
		}
	}
	return nil
}

// validateRates checks the marginal rates.
func (p *Plan) validateRates(spec *serving.Spec) error {
	if p.MarginalRates != nil && len(p.MarginalRates) != len(spec.Stages) {
		return fmt.Errorf("marginal rates of %d stages for %d stages", len(p.MarginalRates), len(spec.Stages))
	}
	for t, rates := range p.MarginalRates {
		if rates != nil && len(rates) != len(spec.DeviceTypes) {
			return fmt.Errorf("stage %q: %d marginal rates for %d device types", spec.Stages[t].Name, len(rates),
				len(spec.DeviceTypes))
		}
		for d, rate := range rates {
			if !(rate >= 0) || math.IsInf(rate, 0) {
				return fmt.Errorf("stage %q: the marginal rate of %q is %v, want a finite number of at least 0",
					spec.Stages[t].Name, spec.DeviceTypes[d].Name, rate)
			}
		}
	}
	return nil
}
