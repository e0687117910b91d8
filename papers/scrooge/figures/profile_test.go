package scrooge

import (
	"math"
	"testing"
)

// Modelled profiles have the numbers that the paper's text gives for measured ones.
func TestProfilesAgainstTheText(t *testing.T) {
	all, err := models()
	if err != nil {
		t.Fatal(err)
	}
	ssd := all["ssd-inception"]
	for _, c := range []struct {
		batch, concurrency int
		rate               float64
	}{{1, 1, 40.98}, {8, 1, 67.52}, {8, 4, 77.51}} {
		if got := ssd.throughput(c.batch, c.concurrency); math.Abs(got/c.rate-1) > 0.005 {
			t.Errorf("ssd-inception at batch %d, concurrency %d: %.2f/s, the paper says %v", c.batch, c.concurrency,
				got, c.rate)
		}
	}
	if took := ssd.latencyMS(8, 1); math.Abs(took-118) > 1 {
		t.Errorf("ssd-inception at batch 8: %.1f ms, the paper says 118", took)
	}
	// "If it allocates 0.2 seconds [...] a batch size of 4, and a concurrency level of 2" (§3.2).
	best, batch, level := 0.0, 0, 0
	for _, e := range concurrencies[:4] {
		for b := 1; b <= 128; b *= 2 {
			if r := ssd.throughput(b, e); r > best && ssd.latencyMS(b, e)+1000*float64(b)/r <= 200 {
				best, batch, level = r, b, e
			}
		}
	}
	if batch != 4 || level != 2 {
		t.Errorf("within 200 ms the best is batch %d at concurrency %d, the paper says 4 at 2", batch, level)
	}
	for b := 16; b <= 128; b *= 2 {
		if ssd.throughput(b, 1) >= ssd.throughput(8, 1) {
			t.Errorf("ssd-inception at batch %d carries more than at 8", b)
		}
	}
	if s := all["s2vt"]; math.Abs(s.latencyMS(1, 1)*s.balloon[0]-686) > 5 ||
		math.Abs(s.latencyMS(1, 1)*s.balloon[1]-1102) > 5 {
		t.Errorf("s2vt takes %.0f to %.0f ms, the paper says 686 to 1102", s.latencyMS(1, 1)*s.balloon[0],
			s.latencyMS(1, 1)*s.balloon[1])
	}
	for name, m := range all {
		most, at := 0.0, 0
		for _, e := range concurrencies {
			if r := m.throughput(1, e); r > most {
				most, at = r, e
			}
		}
		if !m.cpu && (at < 2 || m.throughput(1, concurrencies[len(concurrencies)-1]) >= most) {
			t.Errorf("%s: more concurrency always pays, or never: the best level is %d", name, at)
		}
	}
}
