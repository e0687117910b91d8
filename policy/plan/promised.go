package plan

import (
	"github.com/sluice-serving/sluice/serving"
)

// Promised is the promises of a plan's policies or value functions for a stage, at every arrival rate.
type Promised struct {
	sets   []weightedSet
	values *ValueFunctions
}

// weightedSet is a set of policies with the share of the stage's queries that its instances get.
type weightedSet struct {
	set   *Policies
	share float64
}

// Promised returns the promises of a plan's policies or value functions for a stage, or nil if the plan has neither for
// it. The result refers to p.
func (p *Plan) Promised(spec *serving.Spec, s serving.StageID) *Promised {
	if prices := p.ValuesOf(s); prices != nil && len(p.Policies) == 0 {
		return &Promised{values: prices}
	}
	out := &Promised{}
	for i := range p.Policies {
		x := &p.Policies[i]
		if x.Stage != s {
			continue
		}
		w := weightedSet{set: x}
		for _, i := range p.Instances {
			if i.Stage == s && (x.DeviceType == serving.None || spec.Workers[i.Worker].DeviceType == x.DeviceType) {
				w.share += i.Share
			}
		}
		out.sets = append(out.sets, w)
	}
	if out.sets == nil {
		return nil
	}
	return out
}

// At returns the promise while queries arrive at a rate in queries/s, and the rate that the policies then in force were
// made for. Violation is negative when none is promised. The median and the worst 99 % of the accuracy are not filled
// in.
func (p *Promised) At(rate float64) (out Promise, madeFor float64) {
	add := func(share float64, x *Promise) {
		out.Accuracy += share * x.Accuracy
		if x.Violation < 0 || out.Violation < 0 {
			out.Violation = -1
		} else {
			out.Violation += share * x.Violation
		}
		out.Utilization += share * x.Utilization
	}
	if p.values != nil {
		low, high, part := p.values.Between(rate)
		add(1-part, &low.Promise)
		add(part, &high.Promise)
		return out, (1-part)*low.Rate + part*high.Rate
	}
	for _, w := range p.sets {
		x := w.set.At(rate)
		add(w.share, &x.Promise)
		madeFor = max(madeFor, x.Rate)
	}
	return out, madeFor
}
