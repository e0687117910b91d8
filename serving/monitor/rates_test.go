package monitor

import (
	"math"
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
	if got := r.EWMA(200e9, 0, 1.6); got != 0 {
		t.Errorf("smoothed after a long silence: %v", got)
	}
}

// The EWMA against its definition, and its weights after a step.
func TestEWMA(t *testing.T) {
	r := NewRates(1)
	rates := []int{3, 0, 40, 7, 7, 90}
	for s, n := range rates {
		for k := range n {
			r.Add(serving.Time(s)*1e9+serving.Time(k)*1e9/serving.Time(n), 0)
		}
	}
	a := 1 / 2.6
	var sum, weights float64
	for k := range rates {
		w := math.Pow(1-a, float64(k))
		sum += w * float64(rates[len(rates)-1-k])
		weights += w
	}
	if got := r.EWMA(6e9, 0, 1.6); math.Abs(got-sum/weights) > 1e-9 {
		t.Errorf("got %v, want %v", got, sum/weights)
	}
	young := NewRates(1)
	for k := range serving.Time(50) {
		young.Add(k*1e7, 0)
	}
	if got := young.EWMA(500e6, 0, 1.6); got != 100 {
		t.Errorf("after half a second at 100/s: %v", got)
	}
}

func TestMissed(t *testing.T) {
	r := NewRates(1)
	for k := range serving.Time(40) {
		r.Add(k*1e8, 0)
		if k >= 20 && k%2 == 0 {
			r.Miss(k*1e8, 0)
		}
	}
	if got := r.Missed(serving.Time(4e9), 0, 2*time.Second); got != 5 {
		t.Errorf("%v/s missed in the last two seconds, not 5", got)
	}
	if got := r.Missed(serving.Time(4e9), 0, 4*time.Second); got != 2.5 {
		t.Errorf("%v/s missed in four seconds, not 2.5", got)
	}
	r.Grow([]serving.AppID{1})
	if got := r.Missed(serving.Time(4e9), 1, time.Second); got != 0 {
		t.Errorf("%v/s missed of an app that is new", got)
	}
	if got := r.Missed(serving.Time(60e9), 0, time.Second); got != 0 {
		t.Errorf("%v/s missed long after", got)
	}
}
