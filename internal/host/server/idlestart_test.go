package server

import (
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/serving"
)

const unwritten = `
version: 1
device_types: [{name: m, price_per_hour: 0.4, tenure: rented}]
workers: [{name: m, device_type: m, count: 4, backend: {kind: fake, latency: 10ms, load_time: 2s}}]
apps:
  - {name: a, slo: {latency: 200ms}, variants: [{name: v, accuracy: 0.9, max_batch: 8}]}
  - {name: b, slo: {latency: 200ms}, variants: [{name: w, accuracy: 0.9, max_batch: 8}]}
`

// The first queries of apps whose demand nobody has written find their models loaded, also where machines are rented:
// on no more machines than hold them.
func TestIdleStart(t *testing.T) {
	p, err := hosttest.Profiled(t, unwritten).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var apps []serving.AppID
	for _, i := range p.FirstPlan().Instances {
		apps = append(apps, p.Spec().Stages[i.Stage].App)
	}
	slices.Sort(apps)
	if !slices.Equal(apps, []serving.AppID{0, 1}) {
		t.Errorf("instances of apps %v are planned, want one of each", apps)
	}
	if cost := p.FirstPlan().Forecast.CostPerHour; cost != 0.4 {
		t.Errorf("it rents for %v $/h, want one machine for 0.4", cost)
	}
}
