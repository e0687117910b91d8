package plan

import (
	"math"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

func TestMarginalRatesAreChecked(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "a"}, {Name: "b"}}, Stages: []serving.Stage{{Name: "s"}, {Name: "t"}},
	}
	for _, c := range []struct {
		rates [][]float64
		want  string
	}{
		{nil, ""}, {[][]float64{nil, {1, 0}}, ""},
		{[][]float64{{1, 1}}, "1 stages for 2"}, {[][]float64{nil, {1}}, "\"t\": 1 marginal rates"}, {
			[][]float64{{1, -1}, nil}, "\"s\": the marginal rate of \"b\"",
		},
		{[][]float64{{math.NaN(), 1}, nil}, "\"a\" is NaN"}, {[][]float64{{math.Inf(1), 1}, nil}, "+Inf"},
	} {
		err := (&Plan{Planner: "x", MarginalRates: c.rates}).Validate(spec)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.rates, err, c.want)
		}
	}
}
