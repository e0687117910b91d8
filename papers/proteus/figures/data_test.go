package proteus

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/workload"
)

// The embedded data are the published ones: 46 variants of 9 families on 40 devices, and traces of the right size.
func TestNumbers(t *testing.T) {
	spec, m, err := readProfile(1)
	if err != nil {
		t.Fatal(err)
	}
	if len(spec.Apps) != 9 || len(spec.Variants) != 46 || len(spec.Workers) != 40 {
		t.Errorf("%d families, %d variants, %d devices", len(spec.Apps), len(spec.Variants), len(spec.Workers))
	}
	for _, p := range m.Latency {
		if p.P50 <= 0 || p.Items > 8 {
			t.Errorf("%s: %+v", spec.Variants[p.Variant].Name, p)
		}
	}
	all, err := readTraces(spec, "")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{lightTrace: 75253, authorsTrace: 112861, heavyTrace: 225891, burstyTrace: 175818}
	for _, x := range all {
		if x.total() != want[x.name] {
			t.Errorf("%s has %d queries, want %d", x.name, x.total(), want[x.name])
		}
		sums := 0.0
		for _, r := range x.windows(1) {
			sums += reproduce.Sum(r)
		}
		if int(math.Round(sums)) != x.total() {
			t.Errorf("%s: windows hold %v queries of %d", x.name, sums, x.total())
		}
	}
	names, slos, err := readObjectives(spec)
	if err != nil || fmt.Sprint(names) != "[1 1.5 2.1 2.5 3 3.5]" {
		t.Fatal(names, err)
	}
	for _, x := range names {
		for a, d := range slos[x] {
			if d <= 0 {
				t.Errorf("no objective of %s at %s times", spec.Apps[a].Name, x)
			}
		}
	}
	for _, name := range []string{"clipper-ht", "clipper-ha", "sommelier"} {
		if p, err := readPlacement(spec, name); err != nil || len(p) != 40 {
			t.Errorf("%s: %d placements, %v", name, len(p), err)
		}
	}
}

// Arrivals keep the counts of every second, are in order, and depend on the seed only.
func TestArrivals(t *testing.T) {
	spec, _, err := readProfile(1)
	if err != nil {
		t.Fatal(err)
	}
	all, err := readTraces(spec, "")
	if err != nil {
		t.Fatal(err)
	}
	x := all[0]
	got, err := x.arrivals(3)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := x.arrivals(3)
	other, _ := x.arrivals(4)
	counts := make([]map[int]int, len(spec.Apps))
	for a := range counts {
		counts[a] = make(map[int]int)
	}
	same := true
	for i, q := range got {
		if i > 0 && q.At < got[i-1].At {
			t.Fatalf("arrival %d is before the one before", i)
		}
		if !reflect.DeepEqual(q, again[i]) {
			t.Fatalf("arrival %d differs from that of the same seed", i)
		}
		same = same && reflect.DeepEqual(q, other[i])
		counts[q.App][int(q.At.Seconds())]++
	}
	if same {
		t.Error("two seeds gave the same arrivals")
	}
	for a, c := range x.counts {
		for s, n := range c {
			if counts[a][s] != n {
				t.Errorf("%s, second %d: %d arrivals, want %d", spec.Apps[a].Name, s, counts[a][s], n)
			}
		}
	}
	if n := float64(x.scaled("half", 0.5).total()); math.Abs(n-0.5*float64(x.total())) > 0.01*n {
		t.Errorf("half of %d queries are %v", x.total(), n)
	}
}

// BenchmarkTrace simulates the 290-second trace of 75,253 queries under one plan. ns/query is the cost of the simulator
// without planning.
func BenchmarkTrace(b *testing.B) {
	w, err := newEnvironment(nil, setup{})
	if err != nil {
		b.Fatal(err)
	}
	all, err := readTraces(w.Spec, "")
	if err != nil {
		b.Fatal(err)
	}
	x := all[0]
	hosts, err := readPlacement(w.Spec, "clipper-ht")
	if err != nil {
		b.Fatal(err)
	}
	fixed, err := (&static.Planner{Profile: w.Beliefs, Instances: hosts}).Plan(context.Background(),
		plan.Request{Spec: w.Spec})
	if err != nil {
		b.Fatal(err)
	}
	arrivals, err := x.arrivals(1)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"proteus-batching", "clipper", "nexus-batching"} {
		b.Run(name, func(b *testing.B) {
			j := newJob(w, reproduce.System(name), x)
			j.Initial = fixed
			j.Source = func(uint64) workload.Source { return workload.FromSlice(arrivals) }
			b.ReportAllocs()
			for range b.N {
				if _, err := j.Run(context.Background(), 1); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/trace")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(arrivals)), "ns/query")
		})
	}
}
