package plan

import (
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

func TestCostPerHour(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "a", PricePerHour: 2}, {Name: "b", PricePerHour: 3}},
		Workers:     []serving.Worker{{Name: "u"}, {Name: "v", DeviceType: 1}, {Name: "w", DeviceType: 1}},
	}
	instances := []Instance{{Worker: 2}, {Worker: 0}, {Worker: 2, Place: 2}} // worker 1 has none
	for _, c := range []struct {
		prices []float64
		want   float64
	}{{nil, 5}, {[]float64{10, 0.5}, 10.5}, {[]float64{0, 0}, 0}} {
		r := Request{Spec: spec, Prices: c.prices}
		if got := r.CostPerHour(instances); got != c.want {
			t.Errorf("at prices %v: %v $/h, want %v", c.prices, got, c.want)
		}
	}
}
