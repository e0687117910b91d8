package scrooge_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/papers/scrooge"
)

// example is the worked example of §3.3: Tables 3 and 4, 300 ms, 80 frames/s of which each has 4 objects. The tables
// round latencies; they are taken from the throughputs, which the costs of the text follow.
func example() *scrooge.Problem {
	const X, Y = 0, 1
	row := func(typ, batch, slots int, throughput float64) scrooge.Mode {
		took := float64(batch*slots) / throughput
		return scrooge.Mode{Type: typ, Batch: batch, Slots: slots, Latency: time.Duration(math.Round(took * 1e9))}
	}
	return &scrooge.Problem{
		SLO:    300 * time.Millisecond,
		Prices: []float64{X: 2, Y: 3},
		Modules: []scrooge.Module{
			{
				Rate: 80, Next: []int{1}, Modes: []scrooge.Mode{
					row(X, 2, 1, 50), row(X, 4, 2, 60), row(Y, 2, 1, 81), row(Y, 4, 2, 84),
				},
			},
			{
				Rate: 320, Modes: []scrooge.Mode{
					row(X, 2, 1, 100), row(X, 4, 2, 120), row(Y, 2, 1, 160), row(Y, 4, 2, 200),
				},
			},
		},
	}
}

const (
	publishedCost = 2 + 3*20.0/81 + 3 + 3*120.0/200 // printed as 7.55
	rejectedCost  = 3*80.0/84 + 3*2                 // printed as 9
	tables        = 1e-6                            // what times in whole nanoseconds do to the costs
)

// near holds a cost against one that follows from the tables.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > tables {
		t.Errorf("%s costs %.7f $/h, want %.7f", what, got, want)
	}
}

// The paper's method comes to the paper's allocation.
func TestExampleAsWritten(t *testing.T) {
	p := example()
	a, err := scrooge.AsWritten(context.Background(), p, highstest.Solver(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Verify(p); err != nil {
		t.Fatal(err)
	}
	near(t, "the allocation", a.Cost, publishedCost)
	if ms := a.Latency.Round(time.Millisecond).Milliseconds(); ms != 273 {
		t.Errorf("it takes %v, want 273 ms", a.Latency)
	}
	want := [][]scrooge.Use{{{1, 1, 60}, {2, 1, 20}}, {{3, 1, 200}, {3, 1, 120}}}
	for i, uses := range want {
		if len(a.Modules[i].Uses) != len(uses) {
			t.Fatalf("module %d: %v, want %v", i, a.Modules[i].Uses, uses)
		}
		for k, u := range uses {
			got := a.Modules[i].Uses[k]
			if got.Mode != u.Mode || got.Count != u.Count || math.Abs(got.Rate-u.Rate) > 1e-3 {
				t.Errorf("module %d: %v, want %v", i, got, u)
			}
		}
	}
}

// The allocation that the text rejects: A on Y <4, 2>, B on Y <2, 1>. Its 171 ms take A's partial machine for a full
// one.
func TestExampleRejected(t *testing.T) {
	p := example()
	a, b := &p.Modules[0].Modes[3], &p.Modules[1].Modes[2]
	near(t, "the rejected allocation", 80*p.Prices[a.Type]/a.Rate()+320*p.Prices[b.Type]/b.Rate(), rejectedCost)
	if ms := (a.WorstLatency(80) + b.WorstLatency(b.Rate())).Round(time.Millisecond).Milliseconds(); ms != 170 {
		t.Errorf("it takes %d ms, want 170", ms)
	}
}

// There is something cheaper: two X <4, 2> for A that share its 80 frames evenly wait 100 ms for a batch rather than
// 67, and two Y <4, 2> with 160 items each for B: 298.3 ms, at what the fractional program costs, so that nothing is
// cheaper still.
func TestExampleExact(t *testing.T) {
	p := example()
	a, err := scrooge.Exact(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Verify(p); err != nil {
		t.Fatal(err)
	}
	best := 2*80.0/60 + 3*320.0/200
	near(t, "the allocation", a.Cost, best)
	near(t, "the bound", scrooge.Bound(p), best)
	if want := 298333 * time.Microsecond; a.Latency.Truncate(time.Microsecond) != want {
		t.Errorf("it takes %v, want %v", a.Latency, want)
	}
	brute, err := scrooge.BruteForce(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "brute force", brute.Cost, best)
	greedy, err := scrooge.Greedy(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("as published %.4f $/h, exact %.4f, greedy %.4f", publishedCost, a.Cost, greedy.Cost)
}
