package plan

import "github.com/sluice-serving/sluice/serving"

// OutOfBounds is a stage of which a plan has fewer or more instances than its app's MinInstances and MaxInstances say.
type OutOfBounds struct {
	Stage     serving.StageID
	Instances int
	Bound     int
	Fewer     bool // than the least number; otherwise more than the most
}

// Setting is the name of the bound in a configuration.
func (x OutOfBounds) Setting() string {
	if x.Fewer {
		return "min_instances"
	}
	return "max_instances"
}

// OutOfBounds lists the stages that leave the bounds of their apps, in the order of the stages. A planner that chooses
// other things than the number of instances does not read the bounds, and memory may be too small for the least.
func (p *Plan) OutOfBounds(spec *serving.Spec) (out []OutOfBounds) {
	count := make([]int, len(spec.Stages))
	for n := range p.Instances {
		count[p.Instances[n].Stage]++
	}
	for s, n := range count {
		a := &spec.Apps[spec.Stages[s].App]
		switch {
		case a.Closed:
		case n < a.MinInstances:
			out = append(out, OutOfBounds{serving.StageID(s), n, a.MinInstances, true})
		case a.MaxInstances > 0 && n > a.MaxInstances:
			out = append(out, OutOfBounds{serving.StageID(s), n, a.MaxInstances, false})
		}
	}
	return out
}
