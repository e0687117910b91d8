package board

import "testing"

// Sums over coarser steps are sums of the finer ones, means are weighted by queries, and a variant that comes later
// was not there before.
func TestCoarser(t *testing.T) {
	one := func(x float64) *float64 { return &x }
	make1 := func(at int64, served uint32, accuracy, p99 float64, variant string) *Series {
		s := newSeries()
		s.At, s.Offered, s.Served = []int64{at}, []uint32{served + 1}, []uint32{served}
		s.Violations, s.Cancelled = []uint32{1}, []uint32{0}
		s.Accuracy, s.P50, s.P99 = []*float64{one(accuracy)}, []*float64{one(1)}, []*float64{one(p99)}
		s.Routed, s.Held, s.Run = []*float64{nil}, []*float64{nil}, []*float64{one(2)}
		s.MeanBatch, s.Busy, s.Dollars = []*float64{one(1)}, []*float64{one(0.5)}, []float64{0.25}
		s.Latency, s.Variants[variant] = [][]uint32{{3, served}}, []uint32{served}
		if !s.WellFormed() {
			t.Fatal("not well formed")
		}
		return s
	}
	x := Coarser([]*Series{make1(-61, 10, 1, 5, "a"), make1(-60, 30, 0.5, 9, "a"), make1(-1, 10, 0.9, 7, "b"),
		make1(0, 4, 0.8, 3, "b")}, 60)
	if !x.WellFormed() || len(x.At) != 3 || x.At[0] != -120 || x.At[1] != -60 || x.At[2] != 0 {
		t.Fatalf("%+v", x)
	}
	if x.Served[1] != 40 || x.Offered[1] != 42 || *x.P99[1] != 9 || *x.Accuracy[1] != 0.6 || x.Dollars[1] != 0.5 ||
		x.Routed[1] != nil || x.Latency[1][1] != 40 {
		t.Errorf("%+v", x)
	}
	if a, b := x.Variants["a"], x.Variants["b"]; len(a) != 3 || len(b) != 3 || a[1] != 30 || a[2] != 0 || b[0] != 0 ||
		b[1] != 10 || b[2] != 4 {
		t.Errorf("%v", x.Variants)
	}
	if *x.Accuracy[0] != 1 || x.StepS != 60 {
		t.Errorf("%+v", x)
	}
}
