package plan

import (
	"reflect"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// byVariant is a profile whose latency identifies the variant that was asked for.
type byVariant struct{}

func (byVariant) Latency(v serving.VariantID, _ serving.DeviceTypeID, _, _ int) time.Duration {
	return time.Duration(v)
}
func (byVariant) Learner() profile.Learner { return nil }

func (byVariant) Load(v serving.VariantID, _ serving.DeviceTypeID) time.Duration {
	return time.Duration(10 * v)
}

// Three apps: the second is closed, the first has a second version. Requests lose what is not open, and plans get the
// identifiers of the whole spec back.
func TestOpenNumbers(t *testing.T) {
	app := serving.App{Weight: 1, QueueLimit: 1, SLO: serving.SLO{Latency: 1, Percentile: 99}}
	v := serving.Variant{Accuracy: 1, MaxBatch: 1}
	spec := &serving.Spec{DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{Name: "w"}}}
	spec, a, _ := spec.WithApp(app, v)
	spec, b, _ := spec.WithApp(app, v)
	spec, _, _ = spec.WithApp(app, v)
	spec, _ = spec.WithVersion(a, app, v) // variant 3
	spec = spec.WithClosed(b)
	o := spec.Open()
	r := Request{Spec: spec, Rates: []float64{1, 2, 3}, Mixes: []serving.Mix{{Count: 1}, {Count: 2}},
		Beliefs: byVariant{}, Snapshot: &fleet.Snapshot{Seq: 7, Broken: []serving.VariantID{0, 1, 2},
			Instances: []fleet.InstanceSnapshot{
				{ID: 1, Stage: 0, Variants: []fleet.Loaded{{Variant: 0}, {Variant: 3}}}, {ID: 2, Stage: 1}, {
					ID: 3, Stage: 2, Variants: []fleet.Loaded{{Variant: 2}},
				},
			}}}
	got := r.Restricted(o)
	if !reflect.DeepEqual(got.Rates, []float64{1, 3}) || !reflect.DeepEqual(got.Mixes, []serving.Mix{{Count: 1}}) ||
		got.Snapshot.Seq != 7 {
		t.Errorf("%+v", got)
	}
	// Open variants in the order of the tables: 2 and 3.
	if want := []fleet.InstanceSnapshot{
		{ID: 1, Stage: 0, Variants: []fleet.Loaded{{Variant: 1}}}, {
			ID: 3, Stage: 1, Variants: []fleet.Loaded{{Variant: 0}},
		},
	}; !reflect.DeepEqual(got.Snapshot.Instances, want) {
		t.Errorf("%+v", got.Snapshot.Instances)
	}
	if !reflect.DeepEqual(got.Snapshot.Broken, []serving.VariantID{0}) || len(r.Snapshot.Instances) != 3 {
		t.Errorf("%+v", got.Snapshot.Broken)
	}
	var p = got.Beliefs
	if p.Latency(1, 0, 1, 1) != 3 || p.Load(0, 0) != 20 {
		t.Error("beliefs are numbered wrongly")
	}
	made := &Plan{Instances: []Instance{
		{Stage: 1, Slots: 1, Variants: []Variant{{Variant: 0, Limit: 1}}}, {
			Stage: 0, Slots: 1, Variants: []Variant{{Variant: 1, Limit: 1}},
		},
	},
		Budgets: []time.Duration{5, 6}, Demand: []float64{1, 3}, Capacity: []float64{4, 5}, Shed: []float64{0, 1},
		Mixes: []serving.Mix{{Count: 1}, {Count: 3}},
		Policies: []Policies{{Stage: 1,
			ByRate: []Policy{{Slacks: []time.Duration{0}, Choices: []Choice{{Variant: 0, Queries: 1}}}}}},
		Values: []ValueFunctions{{Stage: 1}}, MarginalRates: [][]float64{{1}, {2}}}
	whole := made.Expanded(o)
	want := &Plan{Instances: []Instance{
		{Stage: 2, Slots: 1, Variants: []Variant{{Variant: 2, Limit: 1}}}, {
			Stage: 0, Slots: 1, Variants: []Variant{{Variant: 3, Limit: 1}},
		},
	},
		Budgets: []time.Duration{5, 0, 6}, Demand: []float64{1, 0, 3}, Capacity: []float64{4, 0, 5},
		Shed: []float64{0, 0, 1}, Mixes: []serving.Mix{{Count: 1}, {}, {Count: 3}},
		Policies: []Policies{{Stage: 2,
			ByRate: []Policy{{Slacks: []time.Duration{0}, Choices: []Choice{{Variant: 2, Queries: 1}}}}}},
		Values: []ValueFunctions{{Stage: 2}}, MarginalRates: [][]float64{{1}, nil, {2}}}
	if !reflect.DeepEqual(whole, want) {
		t.Errorf("got  %+v\nwant %+v", whole, want)
	}
	if made.Instances[0].Stage != 1 || made.Policies[0].ByRate[0].Choices[0].Variant != 0 {
		t.Error("the plan itself was changed")
	}
	closed := &Plan{Instances: []Instance{{Stage: 1, Slots: 1, Variants: []Variant{{Variant: 1, Limit: 1}}}}}
	if closed.Validate(spec) == nil {
		t.Error("a plan may run a closed app")
	}
}
