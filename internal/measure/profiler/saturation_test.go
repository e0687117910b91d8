package profiler

import "testing"

// SSD-Inception in Scrooge §3.2: 67.52 images/s with one batch of 8 and 77.51 with four. A fifth batch would gain less
// than the measurement is exact; with a sixth the throughput falls.
func TestPaying(t *testing.T) {
	f := &File{}
	point := func(variant string, batch, concurrency int, rate float64) {
		f.Points = append(f.Points, Point{
			Variant: variant, DeviceType: "p100", Batch: batch, Concurrency: concurrency,
			Mean: float64(batch*concurrency) / rate * 1e6,
		})
	}
	point("ssd", 8, 6, 74)
	point("ssd", 8, 1, 67.52)
	point("ssd", 8, 2, 73)
	point("ssd", 8, 5, 78)
	point("ssd", 8, 4, 77.51)
	point("ssd", 1, 1, 40.98)
	point("prnet", 1, 1, 90)
	point("prnet", 1, 2, 80)
	got := f.Saturations()
	if len(got) != 2 {
		t.Fatalf("%+v: batches measured at one level only have nothing to compare", got)
	}
	if p := got[0]; p.Variant != "prnet" || p.Concurrency != 1 || p.MaxConcurrency != 2 {
		t.Errorf("prnet holds itself up: %+v", p)
	}
	if p := got[1]; p.Concurrency != 4 || p.MaxConcurrency != 6 || p.SingleThroughput < 67.5 ||
		p.SingleThroughput > 67.6 || p.Throughput < 77.5 ||
		p.Throughput > 77.6 {
		t.Errorf("ssd pays up to four at once: %+v", p)
	}
}
