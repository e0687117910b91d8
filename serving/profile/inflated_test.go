package profile

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Every size and concurrency of a stage balloons alike. Other stages and load times do not, and unknown latencies stay
// unknown.
func TestInflated(t *testing.T) {
	spec := &serving.Spec{Variants: []serving.Variant{{Stage: 0}, {Stage: 1}, {Stage: 2}}}
	base := Constant{Base: 10 * time.Millisecond, PerItem: time.Millisecond, LoadTime: time.Second}
	p := Inflated{Profile: base, Spec: spec, Factors: []float64{1, 2.5}}
	for items := 1; items <= 8; items++ {
		want := base.Latency(0, 0, items, 1)
		if got := p.Latency(0, 0, items, 2); got != want {
			t.Errorf("stage 0, %d items: %v, want %v", items, got, want)
		}
		if got := p.Latency(1, 0, items, 3); math.Abs(float64(got)-2.5*float64(want)) > 1 {
			t.Errorf("stage 1, %d items: %v, want 2.5 times %v", items, got, want)
		}
		if got := p.Latency(2, 0, items, 1); got != want {
			t.Errorf("a stage without a factor, %d items: %v, want %v", items, got, want)
		}
	}
	if p.Load(1, 0) != time.Second {
		t.Error("loads balloon")
	}
	p.Profile = Constant{Base: Unknown}
	if got := p.Latency(1, 0, 1, 1); got < Unknown {
		t.Errorf("what is unknown is believed to take %v", got)
	}
}
