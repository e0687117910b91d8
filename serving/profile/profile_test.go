package profile

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

func spec() *serving.Spec {
	return &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}}, Variants: []serving.Variant{{Name: "v", MaxBatch: 16}},
	}
}

func point(items, concurrency int, mean time.Duration) serving.LatencyPoint {
	return serving.LatencyPoint{Items: items, Concurrency: concurrency, Mean: mean, P50: mean, P95: 2 * mean}
}

func TestTable(t *testing.T) {
	m := serving.Measurements{
		Latency: []serving.LatencyPoint{
			point(1, 1, 10), point(4, 1, 40), point(8, 1, 36), point(1, 2, 15),
		}, Load: []serving.LoadPoint{{Load: 7}},
	}
	p, err := NewTable(spec(), m, P50)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		items, concurrency int
		want               time.Duration
		measured           bool
	}{
		{1, 1, 10, true},
		{2, 1, 20, false}, // between 10 and 40
		{4, 1, 40, true},
		{8, 1, 40, true}, // measured 36, but more items never take less
		{16, 1, 40, false},
		{1, 2, 15, true},
		{2, 2, 30, false}, // one point: in proportion
		{1, 4, 30, false}, // beyond the highest level: in proportion
		{17, 1, Unknown, false},
		{0, 1, Unknown, false},
	} {
		if got := p.Latency(0, 0, c.items, c.concurrency); got != c.want {
			t.Errorf("%d items, %d at once: %d, want %d", c.items, c.concurrency, got, c.want)
		}
		if got := p.Measured(0, 0, c.items, c.concurrency); got != c.measured {
			t.Errorf("%d items, %d at once: measured %v", c.items, c.concurrency, got)
		}
	}
	if p.Load(0, 0) != 7 {
		t.Error("load time is lost")
	}
	if p95, _ := NewTable(spec(), m, P95); p95.Latency(0, 0, 1, 1) != 20 {
		t.Error("the statistic is not heeded")
	}
	if _, err := NewTable(spec(), serving.Measurements{
		Latency: []serving.LatencyPoint{{Variant: 3, Items: 1, Concurrency: 1, Mean: 1}},
	}, Mean); err == nil {
		t.Error("a variant that does not exist was taken")
	}
	if _, err := NewTable(spec(), serving.Measurements{Latency: []serving.LatencyPoint{{Items: 1, Concurrency: 1}}},
		Mean); err == nil || !strings.Contains(err.Error(), `"v"`) {
		t.Errorf("a latency of zero: %v", err)
	}
}

// BatchLimit against a linear search.
func TestBatchLimit(t *testing.T) {
	for seed := uint64(1); seed <= 200; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		var m serving.Measurements
		for b := 1; b <= 16; b *= 2 {
			m.Latency = append(m.Latency, point(b, 1, time.Duration(1+rng.IntN(1000))))
		}
		p, err := NewTable(spec(), m, Mean)
		if err != nil {
			t.Fatal(err)
		}
		within := time.Duration(rng.IntN(1200))
		want := 0
		for b := 1; b <= 16 && p.Latency(0, 0, b, 1) <= within; b++ {
			want = b
		}
		if got := BatchLimit(p, spec(), 0, 0, 1, within); got != want {
			t.Fatalf("seed %d: %d, a search says %d", seed, got, want)
		}
	}
}

// Profiles made from a table know which points were measured; others do not.
func TestTells(t *testing.T) {
	p, err := NewTable(spec(), serving.Measurements{
		Latency: []serving.LatencyPoint{{Items: 2, Concurrency: 1, Mean: 10}},
	}, Mean)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []Profile{
		p, Renumbered{Profile: p, Variants: []serving.VariantID{0}}, Inflated{Profile: p, Spec: spec()},
	} {
		if tells := MeasuredPoints(of); tells == nil || !tells(0, 0, 2, 1) || tells(0, 0, 1, 1) || tells(0, 0, 2, 2) {
			t.Errorf("%T does not tell what was measured", of)
		}
	}
	if MeasuredPoints(Constant{}) != nil || MeasuredPoints(Renumbered{Profile: Constant{}}) != nil {
		t.Error("a constant tells")
	}
}
