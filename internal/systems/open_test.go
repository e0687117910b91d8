package systems

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// demanding fails where an app has no variant that can be loaded, as planners of papers do. Its plans have an instance
// of each stage.
type demanding struct{}

func (demanding) Name() string            { return "demanding" }
func (demanding) Provides() plan.Sections { return 0 }

func (demanding) Plan(_ context.Context, r plan.Request) (*plan.Plan, error) {
	p := &plan.Plan{Planner: "demanding"}
	broken := make(map[serving.VariantID]bool)
	for _, v := range r.Snapshot.Broken {
		broken[v] = true
	}
	for s := range r.Spec.Stages {
		v := r.Spec.Stages[s].Variants[0]
		if broken[v] {
			return nil, fmt.Errorf("nothing serves %s", r.Spec.Stages[s].Name)
		}
		p.Instances = append(p.Instances, plan.Instance{
			Stage: serving.StageID(s), Variants: []plan.Variant{{Variant: v}},
		})
	}
	return p, nil
}

// While an app's model cannot be loaded the others are planned for, unless it is served all the same.
func TestPlansWithoutWhatFailsToLoad(t *testing.T) {
	spec := &serving.Spec{}
	for k := range 3 {
		name := fmt.Sprint("app", k)
		spec.Apps = append(spec.Apps, serving.App{Name: name, Stages: []serving.StageID{serving.StageID(k)}})
		spec.Stages = append(spec.Stages, serving.Stage{
			Name: name, App: serving.AppID(k), Variants: []serving.VariantID{serving.VariantID(k)},
		})
		spec.Variants = append(spec.Variants, serving.Variant{Name: name, Stage: serving.StageID(k)})
	}
	maker := func(profile.Profile, *serving.Open) (plan.Planner, error) { return demanding{}, nil }
	o, err := NewOpen(plan.Known{}, maker)
	if err != nil {
		t.Fatal(err)
	}
	warm := []fleet.InstanceSnapshot{{Stage: 1, Variants: []fleet.Loaded{{Variant: 1, Warm: true}}}}
	for _, x := range []struct {
		what      string
		broken    []serving.VariantID
		instances []fleet.InstanceSnapshot
		want      string // stages of the plan; none for an error
	}{
		{"all can be loaded", nil, nil, "[0 1 2]"},
		{"one cannot", []serving.VariantID{1}, nil, "[0 2]"},
		{"it is served", []serving.VariantID{1}, warm, ""},
		{"none can", []serving.VariantID{0, 1, 2}, nil, ""},
		{"all can again", nil, nil, "[0 1 2]"},
	} {
		p, err := o.Plan(t.Context(), plan.Request{
			Spec: spec, Snapshot: &fleet.Snapshot{Broken: x.broken, Instances: x.instances},
		})
		got := ""
		if p != nil {
			var stages []serving.StageID
			for _, i := range p.Instances {
				stages = append(stages, i.Stage)
			}
			got = fmt.Sprint(stages)
		}
		if got != x.want || (err == nil) != (x.want != "") {
			t.Errorf("%s: %s, %v", x.what, got, err)
		}
	}
	over, end := context.WithCancelCause(t.Context())
	end(errors.New("the server ends"))
	r := plan.Request{Spec: spec, Snapshot: &fleet.Snapshot{Broken: []serving.VariantID{1}}}
	if _, err := o.Plan(over, r); err == nil {
		t.Error("a plan that nobody waits for is made anew")
	}
}
