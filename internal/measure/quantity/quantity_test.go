package quantity

import (
	"math"
	"testing"
)

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.0123: "0.012", 1.5: "1.5", 12.34: "12.3", 100: "100", 999.6: "1,000", 1234567: "1,234,567",
		-1234: "-1,234", 20: "20",
	} {
		if got := Number(x); got != want {
			t.Errorf("%v is written %q, want %q", x, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0 %", 0.05: "5 %", 0.0048: "0.48 %", 0.051: "5.1 %", 0.000001: "0 %", 0.1: "10 %", 1: "100 %",
	} {
		if got := Percent(x); got != want {
			t.Errorf("%v is written %q, want %q", x, got, want)
		}
	}
}

func TestSmallShare(t *testing.T) {
	for x, want := range map[float64]string{
		-1: "-", 0: "0 %", 1e-6: "< 0.001 %", 0.00123: "0.123 %", 0.0123: "1.2 %", 1: "100.0 %",
	} {
		if got := SmallShare(x); got != want {
			t.Errorf("%v is written %q, want %q", x, got, want)
		}
	}
}

func TestRateOfNothing(t *testing.T) {
	for x, want := range map[float64]string{math.Inf(1): "-", 0: "0 /s", 2500: "2,500 /s"} {
		if got := Rate(x); got != want {
			t.Errorf("%v is written %q, want %q", x, got, want)
		}
	}
}
