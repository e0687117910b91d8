package static

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Stages without a placement are spread over the workers by cores in use. Running instances stay, and numbers on a
// worker are used once. An app never has more instances than its limit: surplus ones, from before the limit was
// lowered, are removed.
func TestSpread(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "cpu", Cores: 2}}, Workers: []serving.Worker{{Name: "a"}, {Name: "b"},
			{Name: "c"}},
	}
	for k, least := range []int{0, 3, 1, 0} {
		spec, _, _ = spec.WithApp(serving.App{
			Name: fmt.Sprint(k), Weight: 1, QueueLimit: 1, MinInstances: least,
			SLO: serving.SLO{Latency: time.Second, Percentile: 99},
		},
			serving.Variant{Name: fmt.Sprint("v", k), Accuracy: 1, MaxBatch: 4}, nil)
	}
	p := &Planner{
		Profile: profile.Constant{Base: time.Millisecond}, Spread: true, Instances: []Instance{
			{Worker: 0, Stage: 0, Variants: []serving.VariantID{0}, Cores: 2},
		},
	}
	show := func(s *fleet.Snapshot) string {
		got, err := p.Plan(context.Background(), plan.Request{Spec: spec, Snapshot: s})
		if err != nil {
			t.Fatal(err)
		}
		out := ""
		used := make(map[fleet.Key]bool)
		for _, i := range got.Instances {
			out += fmt.Sprintf(" %d@%s%d", i.Stage, spec.Workers[i.Worker].Name, i.Place)
			if !i.TimeShared || i.Stage != 0 && i.Cores != 0 {
				t.Errorf("%+v, want it to take turns on the whole worker", i)
			}
			k := fleet.Key{Worker: i.Worker, Ordinal: i.Place}
			if used[k] {
				t.Errorf("place %v is used twice: %s", k, out)
			}
			used[k] = true
		}
		return out
	}
	if got, want := show(nil), " 0@a1 3@a2 1@b1 1@b2 1@c1 2@c2"; got != want {
		t.Errorf("%s, want%s", got, want)
	}
	running := func(s serving.StageID, w serving.WorkerID, place int32, state fleet.State) fleet.InstanceSnapshot {
		return fleet.InstanceSnapshot{Stage: s, Key: fleet.Key{Worker: w, Ordinal: place}, State: state}
	}
	// Running instances stay where they are, also under another number. Draining ones, and those on a worker that is
	// down, do not count.
	s := &fleet.Snapshot{Instances: []fleet.InstanceSnapshot{running(0, 0, 1, fleet.Ready),
		running(2, 0, 7, fleet.Ready), running(3, 1, 1, fleet.Launching),
		running(1, 1, 2, fleet.Draining), running(1, 2, 1, fleet.Ready)}, Down: []serving.WorkerID{2}}
	if got, want := show(s), " 0@a1 1@a2 2@a7 3@b1 1@b2 1@b3"; got != want {
		t.Errorf("%s, want%s", got, want)
	}
	spec.Apps[1].MinInstances, spec.Apps[1].MaxInstances = 1, 1
	s = &fleet.Snapshot{
		Instances: []fleet.InstanceSnapshot{
			running(1, 1, 2, fleet.Ready), running(1, 2, 1, fleet.Ready), running(1, 2, 2, fleet.Launching),
		},
	}
	if got, want := show(s), " 0@a1 3@a2 2@b1 1@b2"; got != want {
		t.Errorf("%s, want%s", got, want)
	}
}
