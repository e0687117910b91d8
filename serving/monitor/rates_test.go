package monitor

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

func TestRates(t *testing.T) {
	r := NewRates(2)
	for s := range serving.Time(20) {
		for k := range 10 + s {
			r.Add(s*1e9+k*1e6, 0)
		}
	}
	now := serving.Time(20e9)
	if got := r.Rate(now, 0, 5*time.Second); got != (25+26+27+28+29)/5.0 {
		t.Errorf("last five seconds: %v", got)
	}
	if got := r.Rate(now, 1, 5*time.Second); got != 0 {
		t.Errorf("the other app: %v", got)
	}
	if got := r.Rate(200e9, 0, 5*time.Second); got != 0 {
		t.Errorf("after a long silence: %v", got)
	}
}
