package plan

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// A promise is the mean of those of the types of worker, weighed by their shares.
func TestPromised(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "a"}, {Name: "b"}},
		Workers: []serving.Worker{
			{Name: "a0", DeviceType: 0}, {Name: "a1", DeviceType: 0}, {Name: "b0", DeviceType: 1},
		},
		Stages: []serving.Stage{{Name: "one"}, {Name: "two"}},
	}
	policy := func(rate, accuracy, violation float64) Policy {
		return Policy{
			Rate: rate, Slacks: []time.Duration{0}, Promise: Promise{Accuracy: accuracy, Violation: violation},
		}
	}
	p := &Plan{
		Instances: []Instance{{Worker: 0, Share: 0.25}, {Worker: 1, Share: 0.25}, {Worker: 2, Share: 0.5}},
		Policies: []Policies{
			{Stage: 0, DeviceType: 0, ByRate: []Policy{policy(10, 0.9, 0.02), policy(20, 0.8, 0.04)}},
			{Stage: 0, DeviceType: 1, ByRate: []Policy{policy(15, 0.7, 0), policy(30, 0.6, -1)}},
		},
	}
	if p.Promised(spec, 1) != nil {
		t.Error("something is promised for a stage without policies")
	}
	x := p.Promised(spec, 0)
	for _, c := range []struct {
		rate, accuracy, violation, made float64
	}{{5, 0.8, 0.01, 15}, {12, 0.75, 0.02, 20}, {16, 0.7, -1, 30}, {99, 0.7, -1, 30}} {
		got, made := x.At(c.rate)
		if math.Abs(got.Accuracy-c.accuracy) > 1e-12 || math.Abs(got.Violation-c.violation) > 1e-12 || made != c.made {
			t.Errorf("at %v/s: %+v, made for %v; want %+v", c.rate, got, made, c)
		}
	}
	p.Policies, p.Values = nil, []ValueFunctions{
		{
			Stage: 0, ByRate: []ValueFunction{
				{Rate: 10, Promise: Promise{Accuracy: 0.9}}, {
					Rate: 20, Promise: Promise{Accuracy: 0.7, Violation: 0.1},
				},
			},
		},
	}
	if got, made := p.Promised(spec, 0).At(15); math.Abs(got.Accuracy-0.8) > 1e-12 ||
		math.Abs(got.Violation-0.05) > 1e-12 || math.Abs(made-15) > 1e-12 {
		t.Errorf("between prices: %+v, made for %v", got, made)
	}
}
