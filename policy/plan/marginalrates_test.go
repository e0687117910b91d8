package plan

import (
	"math"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

func TestWorthValidate(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "a"}, {Name: "b"}}, Stages: []serving.Stage{{Name: "s"}, {Name: "t"}},
	}
	for _, c := range []struct {
		worth [][]float64
		want  string
	}{
		{nil, ""}, {[][]float64{nil, {1, 0}}, ""},
		{[][]float64{{1, 1}}, "1 stages for 2"}, {[][]float64{nil, {1}}, "\"t\": 1 worths"}, {
			[][]float64{{1, -1}, nil}, "\"s\": the worth of \"b\"",
		},
		{[][]float64{{math.NaN(), 1}, nil}, "\"a\" is NaN"}, {[][]float64{{math.Inf(1), 1}, nil}, "+Inf"},
	} {
		err := (&Plan{Planner: "x", MarginalRates: c.worth}).Validate(spec)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.worth, err, c.want)
		}
	}
}
