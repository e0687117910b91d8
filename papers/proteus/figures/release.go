package proteus

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
)

// The authors' release deviates from the paper in these parameters. The comparison with its figures needs them. The
// engine stays the project's own.
const (
	releaseLate     = time.Second      // an answer later than this counts as late, whatever its objective
	releaseInterval = 10 * time.Second // between plans
	releaseHeadroom = 1.5              // of Sommelier; the others have 1.05
)

// releaseSetup serves late queries and drops those that have waited for twice the objective.
var releaseSetup = setup{giveUp: defaultObjective}

// newReleaseJob returns the job of a system as the authors' release runs it. Planning takes no time and happens every
// ten seconds only. Shares are equal within a family, whatever the capacity of a worker. Static systems have the
// authors' placements.
func newReleaseJob(w *experiment.Environment, name string, t *trace) (*job, error) {
	s := reproduce.System(name)
	j := newJob(w, s, t)
	j.late, j.PlanDelay = releaseLate, 0
	j.System.Router = "random"
	p := &j.System.Options.Planning
	p.Slack, p.Tolerance, p.Equal, j.System.Options.Release = -1, -1, s.Scaler != "fixed", true
	if p.Place == "fixed" {
		p.Headroom = releaseHeadroom
	}
	if s.Scaler != "fixed" {
		j.Scaler = scale.Replan{Interval: releaseInterval, Plain: true}
	}
	counts, err := readPlacement(w.Spec, name)
	if err != nil || counts == nil {
		return j, err
	}
	fixed := &static.Planner{Profile: w.Beliefs, Instances: counts}
	j.Initial, err = fixed.Plan(context.Background(), plan.Request{Spec: w.Spec})
	return j, err
}

// readPlacement reads the authors' placement of a system's variants; nil for a system that begins with a plan of its
// own.
func readPlacement(spec *serving.Spec, name string) ([]static.Instance, error) {
	used := make([]bool, len(spec.Workers))
	var out []static.Instance
	err := data.Read("placements.csv", "system,device,variant,workers", 3, func(key []string, n []float64) error {
		if key[0] != name {
			return nil
		}
		v := indexOf(spec.Variants, func(v *serving.Variant) bool { return v.Name == key[2] })
		if v < 0 {
			return fmt.Errorf("variant %q is not in the profile", key[2])
		}
		count := int(n[0])
		for w := range spec.Workers {
			if count > 0 && !used[w] && spec.DeviceTypes[spec.Workers[w].DeviceType].Name == key[1] {
				used[w] = true
				count--
				out = append(out, static.Instance{
					Worker: serving.WorkerID(w), Stage: spec.Variants[v].Stage,
					Variants: []serving.VariantID{serving.VariantID(v)}, Cores: 1,
				})
			}
		}
		if count > 0 {
			return fmt.Errorf("%d workers %q too many", count, key[1])
		}
		return nil
	})
	return out, err
}
