package profile_test

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// The primary profile answers for what was measured, the secondary for the rest.
func TestOr(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "measured"}, {Name: "not"}},
		Variants:    []serving.Variant{{Name: "v", MaxBatch: 4}},
	}
	table, err := profile.NewTable(spec, serving.Measurements{
		Latency: []serving.LatencyPoint{{Items: 1, Concurrency: 1, Mean: 3 * time.Millisecond}},
		Load:    []serving.LoadPoint{{Load: time.Second}}}, profile.Mean)
	if err != nil {
		t.Fatal(err)
	}
	p := profile.Fallback{
		Primary: table, Secondary: profile.Constant{Base: 10 * time.Millisecond, LoadTime: time.Minute},
	}
	if got := p.Latency(0, 0, 1, 1); got != 3*time.Millisecond {
		t.Errorf("measured: %v", got)
	}
	if got := p.Latency(0, 1, 1, 1); got != 10*time.Millisecond {
		t.Errorf("not measured: %v", got)
	}
	if a, b := p.Load(0, 0), p.Load(0, 1); a != time.Second || b != time.Minute {
		t.Errorf("loads %v and %v", a, b)
	}
}
