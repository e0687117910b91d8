package proteus

import (
	"context"
	_ "embed" // the placements
	"fmt"
	"strconv"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
)

//go:embed data/placements.csv
var placementsCSV []byte

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
	s := system(name)
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
	rows, err := reproduce.Records("data/placements.csv", placementsCSV, "system", "device", "variant", "workers")
	if err != nil {
		return nil, err
	}
	used := make([]bool, len(spec.Workers))
	var out []static.Instance
	for n, r := range rows {
		if r[0] != name {
			continue
		}
		count, err := strconv.Atoi(r[3])
		v := indexOf(spec.Variants, func(v *serving.Variant) bool { return v.Name == r[2] })
		if err != nil || v < 0 {
			return nil, fmt.Errorf("data/placements.csv: line %d is malformed", n+2)
		}
		for w := range spec.Workers {
			if count > 0 && !used[w] && spec.DeviceTypes[spec.Workers[w].DeviceType].Name == r[1] {
				used[w] = true
				count--
				out = append(out, static.Instance{
					Worker: serving.WorkerID(w), Stage: spec.Variants[v].Stage,
					Variants: []serving.VariantID{serving.VariantID(v)}, Cores: 1,
				})
			}
		}
		if count > 0 {
			return nil, fmt.Errorf("data/placements.csv: line %d: %d workers %q too many", n+2, count, r[1])
		}
	}
	return out, nil
}

func indexOf[T any](list []T, is func(*T) bool) int {
	for i := range list {
		if is(&list[i]) {
			return i
		}
	}
	return -1
}
