package profile

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

func TestCappedHidesWhatDoesNotFit(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: make([]serving.DeviceType, 2), Variants: []serving.Variant{{Name: "v", MaxBatch: 8}},
	}
	var m serving.Measurements
	for d := range 2 {
		for _, n := range []int{1, 4, 8} {
			m.Latency = append(m.Latency, serving.LatencyPoint{
				DeviceType: serving.DeviceTypeID(d), Items: n, Concurrency: 1,
				Mean: time.Duration(n) * time.Millisecond,
			})
		}
	}
	table, err := NewTable(spec, m, Mean)
	if err != nil {
		t.Fatal(err)
	}
	p := Capped{Profile: table, Most: map[Cell]int{{0, 1}: 4}}
	if got := p.Latency(0, 1, 4, 1); got != 4*time.Millisecond {
		t.Errorf("at the limit %v", got)
	}
	if got := p.Latency(0, 1, 5, 1); got != Unknown {
		t.Errorf("above the limit %v", got)
	}
	if got := p.Latency(0, 0, 8, 1); got != 8*time.Millisecond {
		t.Errorf("on the other device type %v", got)
	}
	if n := BatchLimit(p, spec, 0, 1, 1, time.Second); n != 4 {
		t.Errorf("batch limit %d, want 4", n)
	}
	points := MeasuredPoints(p)
	if !points(0, 1, 4, 1) || points(0, 1, 8, 1) || !points(0, 0, 8, 1) {
		t.Error("points above the limit count as measured, or others do not")
	}
}
