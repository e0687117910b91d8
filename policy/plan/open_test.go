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
	spec, a, _ := spec.WithApp(app, v, nil)
	spec, b, _ := spec.WithApp(app, v, nil)
	spec, _, _ = spec.WithApp(app, v, nil)
	spec, _ = spec.WithVersion(a, app, v, nil) // variant 3
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

// Every table of a request and of a plan that is by app, stage or variant is translated. A new field has to be listed
// here.
func TestOpenTranslatesEveryTable(t *testing.T) {
	app := serving.App{Weight: 1, QueueLimit: 1, SLO: serving.SLO{Latency: 1, Percentile: 99}}
	v := serving.Variant{Accuracy: 1, MaxBatch: 1}
	spec := &serving.Spec{DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{Name: "w"}}}
	for range 3 {
		spec, _, _ = spec.WithApp(app, v, nil)
	}
	o := spec.WithClosed(0).Open() // identifiers 1 and 2 are 0 and 1 of the open part
	same := map[string]bool{       // by nothing, by device type or worker, or translated otherwise
		"Spec": true, "Snapshot": true, "Beliefs": true, "Prices": true, "Known": true, "Planner": true,
		"Instances": true, "Prefer": true, "Policies": true, "Values": true, "Sharing": true, "Shortage": true,
		"Loads": true, "Forecast": true, "Bound": true, "Gap": true, "Proven": true, "Trials": true, "Choice": true,
		"BoundsCost": true, "Experience": true,
	}
	// tables fills every table with entries 1 to n.
	tables := func(x reflect.Value, n int) {
		for k := range x.NumField() {
			f := x.Field(k)
			if name := x.Type().Field(k).Name; same[name] {
				continue
			} else if f.Kind() != reflect.Slice {
				t.Fatalf("%v.%s is neither a table nor known not to be one", x.Type(), name)
			}
			f.Set(reflect.MakeSlice(f.Type(), n, n))
			for at := range n {
				number(f.Index(at), at+1)
			}
		}
	}
	var r, want Request
	tables(reflect.ValueOf(&r).Elem(), 3)
	tables(reflect.ValueOf(&want).Elem(), 3)
	for x, k := reflect.ValueOf(&want).Elem(), 0; k < x.NumField(); k++ {
		if f := x.Field(k); f.Kind() == reflect.Slice && f.Len() == 3 {
			f.Set(f.Slice(1, 3))
		}
	}
	want.Spec = o.Spec
	if got := r.Restricted(o); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	var p Plan
	tables(reflect.ValueOf(&p).Elem(), 2)
	p.Sharing, p.Forecast = []serving.StageID{0, 1}, Forecast{Late: []float64{1, 2}, Accurate: []float64{1, 2}}
	whole := p.Expanded(o)
	if !reflect.DeepEqual(whole.Sharing, []serving.StageID{1, 2}) ||
		!reflect.DeepEqual(whole.Forecast.Late, []float64{0, 1, 2}) ||
		!reflect.DeepEqual(whole.Forecast.Accurate, []float64{0, 1, 2}) {
		t.Errorf("sharing %v, forecast %+v", whole.Sharing, whole.Forecast)
	}
	was, is := reflect.ValueOf(p), reflect.ValueOf(*whole)
	for k := range is.NumField() {
		if name := is.Type().Field(k).Name; same[name] {
			continue
		} else if f := is.Field(k); f.Len() != 3 || !f.Index(0).IsZero() ||
			!reflect.DeepEqual(f.Slice(1, 3).Interface(), was.Field(k).Interface()) {
			t.Errorf("%s is %v, want a zero value and %v", name, f, was.Field(k))
		}
	}
}

// number sets an entry of a table to a value that is n, or holds it.
func number(x reflect.Value, n int) {
	switch x.Kind() {
	case reflect.Float64:
		x.SetFloat(float64(n))
	case reflect.Int64:
		x.SetInt(int64(n))
	case reflect.Slice:
		x.Set(reflect.MakeSlice(x.Type(), 1, 1))
		number(x.Index(0), n)
	case reflect.Struct:
		x.FieldByName("Count").SetInt(int64(n))
	}
}

// What was measured of open variants keeps its meaning, and that of others is left out.
func TestKnownIsRestricted(t *testing.T) {
	o := &serving.Open{
		Variants: []serving.VariantID{2, 3}, VariantOf: []serving.VariantID{serving.None, serving.None, 0, 1},
	}
	k := &Known{Profile: byVariant{}}
	for v := range serving.VariantID(4) {
		k.Measurements.Latency = append(k.Measurements.Latency, serving.LatencyPoint{Variant: v, Items: int(10 + v)})
		k.Measurements.Load = append(k.Measurements.Load, serving.LoadPoint{Variant: v, Load: time.Duration(v)})
	}
	got := k.Restricted(o)
	want := serving.Measurements{
		Latency: []serving.LatencyPoint{{Variant: 0, Items: 12}, {Variant: 1, Items: 13}},
		Load:    []serving.LoadPoint{{Variant: 0, Load: 2}, {Variant: 1, Load: 3}},
	}
	if !reflect.DeepEqual(got.Measurements, want) || got.Profile.Latency(1, 0, 1, 1) != 3 {
		t.Errorf("%+v, %v", got.Measurements, got.Profile)
	}
	if (*Known)(nil).Restricted(o) != nil {
		t.Error("something is known of nothing")
	}
}
