package planning

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
	"github.com/sluice-serving/sluice/internal/planner/diagnosis"
	"github.com/sluice-serving/sluice/internal/planner/fluid"
	"github.com/sluice-serving/sluice/papers/proteus"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Diagnosis is a diagnosis.Diagnosis with names instead of identifiers.
type Diagnosis struct {
	Headroom float64 `json:"headroom"` // factor on the demand, included in what follows
	Carried  bool    `json:"carried"`
	// Multiple is the largest multiple of the demand that was found to be carried. No multiple above Bound can be
	// carried.
	Multiple    float64      `json:"multiple"`
	Bound       float64      `json:"multiple_bound"`
	Unserved    []Unserved   `json:"unserved,omitempty"`
	Bottlenecks []Bottleneck `json:"bottlenecks,omitempty"`
	Limits      []Limit      `json:"limits,omitempty"`
	Remedies    []Remedy     `json:"mends,omitempty"`
}

// Unserved is a stage that nothing can serve.
type Unserved struct {
	App   string `json:"app"`
	Stage string `json:"stage"`
	// AccuracyFloor is the highest with which it could be served; SLOMS the shortest objective within which Variant
	// serves it on DeviceType. Absent where there is none.
	AccuracyFloor *float64 `json:"accuracy_floor,omitempty"`
	SLOMS         *float64 `json:"slo_ms,omitempty"`
	Variant       string   `json:"variant,omitempty"`
	DeviceType    string   `json:"device_type,omitempty"`
	Text          string   `json:"text"`
}

// Bottleneck is a stage without which a larger multiple of the demand could be carried: Without.
type Bottleneck struct {
	App     string   `json:"app"`
	Stage   string   `json:"stage"`
	Without *float64 `json:"multiple_without,omitempty"` // absent if unlimited
	Text    string   `json:"text"`
}

// Limit is a limit of the whole fleet without which a larger multiple of the demand could be carried: Without.
type Limit struct {
	Kind    string  `json:"kind"` // budget, most or memory
	Without float64 `json:"multiple_without"`
	Text    string  `json:"text"`
}

// diagnose adds the diagnosis of a demand that is not carried, by the plan's planner if that makes diagnoses. Else one
// does that may put any variant on any worker: fluid for graphs and where machines are rented, otherwise proteus.
func (a *answerer) diagnose(ctx context.Context, p *host.Profiled, planner plan.Planner, r plan.Request, d *Demand,
	v *Plan) error {
	found, err := a.find(ctx, p, planner, r, v)
	if err != nil {
		return err
	}
	if total := d.Total(); total > 0 {
		reach := found.Multiple * total
		v.Reach = &reach
	}
	v.Diagnosis = withNames(r.Spec, found, d)
	return nil
}

func (a *answerer) find(ctx context.Context, p *host.Profiled, planner plan.Planner, r plan.Request, v *Plan) (
	*diagnosis.Diagnosis, error) {
	if own := fluidOf(planner); own != nil {
		return fluid.Diagnose(ctx, own, r)
	}
	if own, ok := planner.(*proteus.Planner); ok {
		return a.exact(ctx, p, own, r)
	}
	if graphs(r.Spec) || r.Spec.Rents() {
		adviser := &fluid.Planner{Profile: p.Latencies(), Options: fluid.Options{Pooled: true}}
		v.Adviser = adviser.Name()
		return fluid.Diagnose(ctx, adviser, r)
	}
	solver, err := host.Solver()
	if err != nil {
		return nil, err
	}
	adviser := &proteus.Planner{Profile: p.Latencies(), Solver: solver}
	v.Adviser = adviser.Name()
	return a.exact(ctx, p, adviser, r)
}

// fluidOf returns the planner fluid that a planner is, or has for whole machines; nil for others.
func fluidOf(planner plan.Planner) *fluid.Planner {
	switch own := planner.(type) {
	case *fluid.Planner:
		return own
	case interface{ Whole() *fluid.Planner }:
		return own.Whole()
	}
	return nil
}

// exact is the diagnosis of proteus, which shows its progress.
func (a *answerer) exact(ctx context.Context, p *host.Profiled, own *proteus.Planner, r plan.Request) (
	*diagnosis.Diagnosis, error) {
	watched := *own
	watched.Solver = &watchedSolver{
		Solver: own.Solver, most: float64(80 + 2*len(r.Spec.Stages) + 3*len(r.Spec.DeviceTypes)),
		show: func(share float64) { p.Options().Progress(share, "looking for what would mend it") },
	}
	return proteus.Diagnose(ctx, &watched, r)
}

// watchedSolver reports the progress of a search of many solves, as a share of the largest number of solves.
type watchedSolver struct {
	milp.Solver
	done, most float64
	show       func(share float64)
}

// Solve implements milp.Solver.
func (s *watchedSolver) Solve(ctx context.Context, p *milp.Program, l milp.Limits) (*milp.Solution, error) {
	s.show(s.done / max(s.most, s.done+1))
	s.done++
	return s.Solver.Solve(ctx, p, l)
}

// withNames returns a diagnosis with names instead of identifiers.
func withNames(spec *serving.Spec, found *diagnosis.Diagnosis, d *Demand) *Diagnosis {
	out := &Diagnosis{
		Headroom: found.Headroom, Carried: found.Carried, Multiple: found.Multiple, Bound: found.Bound,
	}
	for i := range found.Unserved {
		out.Unserved = append(out.Unserved, namedUnserved(spec, &found.Unserved[i]))
	}
	for _, b := range found.Bottlenecks {
		x := Bottleneck{
			App: spec.Apps[b.App].Name, Stage: spec.Stages[b.Stage].Name, Text: stageTitle(spec, b.Stage),
		}
		if !math.IsInf(b.Without, 1) {
			x.Without = &b.Without
			x.Text += fmt.Sprintf(": without it, %s of the rest could be carried", quantity.Multiple(b.Without))
		}
		out.Bottlenecks = append(out.Bottlenecks, x)
	}
	for _, l := range found.Limits {
		x := Limit{Kind: string(l.Kind), Without: l.Without}
		x.Text = fmt.Sprintf("%s: without it, %s could be carried", limits[l.Kind], quantity.Multiple(l.Without))
		out.Limits = append(out.Limits, x)
	}
	for i := range found.Remedies {
		out.Remedies = append(out.Remedies, namedRemedy(spec, &found.Remedies[i], d))
	}
	return out
}

// limits are the names of limits.
var limits = map[diagnosis.LimitKind]string{
	diagnosis.BudgetLimit: "the budget", diagnosis.MostLimit: "how many machines can be rented (most)",
	diagnosis.MemoryLimit: "the memory of machines",
}

func namedUnserved(spec *serving.Spec, u *diagnosis.UnservedStage) Unserved {
	app := &spec.Apps[u.App]
	x := Unserved{App: app.Name, Stage: spec.Stages[u.Stage].Name}
	var ways []string
	if u.Floor > 0 && u.Floor < app.Floor {
		x.AccuracyFloor = &u.Floor
		ways = append(ways, fmt.Sprintf("an accuracy_floor of %g (now %g)", u.Floor, app.Floor))
	}
	if u.SLO > 0 {
		slo := quantity.Milliseconds(u.SLO)
		x.SLOMS, x.Variant, x.DeviceType = &slo, spec.Variants[u.Variant].Name, spec.DeviceTypes[u.Device].Name
		ways = append(ways, fmt.Sprintf("an SLO of %v (now %v), with %s on %s", u.SLO, app.SLO.Latency, x.Variant,
			x.DeviceType))
	}
	x.Text = stageTitle(spec, u.Stage) + ": nothing here serves it"
	if len(ways) > 0 {
		x.Text += "; it would take " + strings.Join(ways, ", or ")
	}
	return x
}

// stageTitle returns the name of an app of one stage, or those of the app and the stage.
func stageTitle(spec *serving.Spec, s serving.StageID) string {
	app := &spec.Apps[spec.Stages[s].App]
	if len(app.Stages) > 1 {
		return app.Name + ", stage " + spec.Stages[s].Name
	}
	return app.Name
}
