package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// encoders is a cluster of machines whose batches of n items of length L take 2 ms + n (0.2 ms + 30 us L), measured at
// length 64, at a quarter of it and at four times as much. Serving adds 3 ms to each batch.
func encoders(machines int, pads bool, slo time.Duration) *simtest.Cluster {
	takes := func(n, length int) time.Duration {
		return 2*time.Millisecond + time.Duration(n*(200+30*length))*time.Microsecond
	}
	c := simtest.Uniform(machines, 2*time.Millisecond, takes(1, 64)-2*time.Millisecond, slo, 16)
	c.Spec.Variants[0].Pads = pads
	for _, n := range []int{1, 16} {
		for _, length := range []int{16, 256} {
			c.Measurements.Length = append(c.Measurements.Length, serving.LengthPoint{
				Reference: 64, Length: int32(length), Items: n, Mean: takes(n, length),
			})
		}
	}
	c.Measurements.Overhead = []serving.Overhead{{Batch: 3 * time.Millisecond}}
	return c
}

// believedOf is what a rule believes of a cluster: the means that were measured.
func believedOf(tb testing.TB, c *simtest.Cluster) *profile.Table {
	tb.Helper()
	p, err := profile.NewTable(c.Spec, c.Measurements, profile.Mean)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// exactly are machines that take what is given, and longer for longer queries as the cluster's were measured.
func exactly(tb testing.TB, c *simtest.Cluster, takes serving.Measurements) *truth.Table {
	tb.Helper()
	m, err := truth.NewTable(c.Spec, takes, truth.Exact, nil)
	if err != nil {
		tb.Fatal(err)
	}
	m.Stretch = profile.NewStretches(c.Spec, c.Measurements).Latency
	return m
}

// ofLengths are n queries at a rate, in queries/s, whose lengths are log-normal around 60.
func ofLengths(rng *rand.Rand, n int, rate float64) (out []workload.Arrival) {
	at := 0.0
	for range n {
		at += rng.ExpFloat64() / rate
		length := int32(min(max(math.Exp(math.Log(60)+0.9*rng.NormFloat64()), 4), 500))
		out = append(out, workload.Arrival{
			At: serving.Time(at * 1e9), Items: 1 + rng.Int32N(2), Length: length, Variant: serving.None, Sample: -1,
		})
	}
	return out
}

// What is believed of a batch of queries of many lengths is what it takes, padded or not, after a first few of which
// serving took more than was measured. Where latencies are learned besides, what was learned of long queries does not
// spoil what is believed of the length that was measured.
func TestLengthsAreForeseen(t *testing.T) {
	for _, pads := range []bool{false, true} {
		for _, learn := range []bool{false, true} {
			for _, router := range []string{"earliestfinish", "priced"} {
				t.Run(fmt.Sprintf("pads=%v,learn=%v,%s", pads, learn, router), func(t *testing.T) {
					foresees(t, pads, learn, router)
				})
			}
		}
	}
}

// fewBatches is how many batches end before it is known what serving adds: those that run then count as well.
const fewBatches = 32

func foresees(t *testing.T, pads, learn bool, router string) {
	c := encoders(3, pads, 300*time.Millisecond)
	believed := believedOf(t, c)
	served := c.Measurements
	served.Overhead = []serving.Overhead{{Batch: 8 * time.Millisecond}}
	machines := exactly(t, c, served)
	first, err := c.Planner.Plan(context.Background(), plan.Request{Spec: c.Spec})
	if err != nil {
		t.Fatal(err)
	}
	batcher := "greedy"
	if router == "priced" {
		batcher = "asrouted"
	}
	s := systems.System{Router: router, Batcher: batcher}
	s.Options.Learn = learn
	e, err := s.Engine(c.Spec, believed, c.Planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	arrivals := ofLengths(rand.New(rand.NewPCG(7, 1)), 3000, 500)
	type belief struct {
		from serving.Time
		time time.Duration
	}
	expected := make(map[serving.BatchID]belief)
	batches, together := 0, 0
	_, err = Run(Config{
		Spec: c.Spec, Engine: e, Truth: machines, Initial: first, Warm: true, Check: true,
		Source: workload.FromSlice(arrivals),
		Observe: func(now serving.Time, in []engine.Input, out []engine.Decision) {
			for k := range in {
				if x := &in[k]; x.Kind == engine.BatchDone {
					batches++
					b := expected[x.Batch]
					took := now.Sub(b.from)
					if batches <= fewBatches {
						continue
					}
					if off := float64(b.time)/float64(took) - 1; math.Abs(off) > 0.01 {
						t.Fatalf("batch %d was believed to take %v and took %v (seed 7)", x.Batch, b.time, took)
					}
				}
			}
			for k := range out {
				if x := &out[k]; x.Kind == engine.StartBatch {
					expected[x.Batch] = belief{now, x.Expected}
					together += min(len(x.Tasks)-1, 1)
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	// Rules that know no lengths see the mean: of (200 + 30 L) us an item, and of the runs of eight such queries.
	sum, items, whole, n := 0.0, 0.0, 0.0, 0.0
	var group []serving.Run
	for _, a := range arrivals {
		sum, items = sum+float64(a.Items)*(200+30*float64(a.Length)), items+float64(a.Items)
		if group = append(group, serving.Run{Items: 1, Length: a.Length}); len(group) == 8 {
			whole, n = whole+8000, n+1
			for _, r := range c.Spec.Variants[0].Runs(group) {
				whole += 2000 + float64(r.Items)*(200+30*float64(r.Length))
			}
			group = nil
		}
	}
	near := func(what string, got time.Duration, us float64) {
		if off := float64(got)/1e3/us - 1; math.Abs(off) > 0.25 {
			t.Errorf("%s are believed to take %v, take %.0f us", what, got, us)
		}
	}
	near("8 items of the mean length", e.Fleet().EvenLatency(0, 0, 8, 1), 10000+8*sum/items)
	near("8 items of many lengths", e.Fleet().Latency(0, 0, 8, 1), whole/n)
	if batches < 100 || together < batches/20 {
		t.Errorf("%d batches, %d of several queries", batches, together)
	}
}

// long is the content of a query whose one item has a length at the second stage.
type long int32

func (long) Fan(serving.StageID, int) float64     { return 1 }
func (long) Balloon(serving.StageID) float64      { return 1 }
func (l long) Length(s serving.StageID) int32     { return int32(s) * int32(l) }
func (l long) Frame(q *serving.Query) truth.Frame { return long(16 + q.ID*37%480) }

// What comes to a stage behind others has a length of its own there, which is known once the stage before has ended:
// from then on it is foreseen what it takes.
func TestLengthsOfLaterStagesAreForeseen(t *testing.T) {
	takes := func(n, length int) time.Duration {
		return 2*time.Millisecond + time.Duration(n*(200+30*length))*time.Microsecond
	}
	c := simtest.Staged([]serving.Stage{
		{Name: "cut", Next: []serving.Edge{{To: 1, FanOut: 1}}}, {Name: "read"},
	}, 2, 2*time.Millisecond, takes(1, 64)-2*time.Millisecond, time.Second, 4)
	for _, n := range []int{1, 4} {
		for _, length := range []int{16, 256} {
			c.Measurements.Length = append(c.Measurements.Length, serving.LengthPoint{
				Variant: 1, Reference: 64, Length: int32(length), Items: n, Mean: takes(n, length),
			})
		}
	}
	believed, machines := believedOf(t, c), exactly(t, c, c.Measurements)
	e, err := systems.System{Router: "priced", Batcher: "asrouted"}.Engine(c.Spec, believed, c.Planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	expected := make(map[serving.BatchID]time.Duration)
	shortest, longest := time.Hour, time.Duration(0)
	_, err = Run(Config{
		Spec: c.Spec, Engine: e, Truth: machines, Content: long(0), Initial: c.Plan, Warm: true, Check: true,
		Source: workload.FromSlice(ofLengths(rand.New(rand.NewPCG(3, 3)), 500, 100)),
		Observe: func(_ serving.Time, in []engine.Input, out []engine.Decision) {
			for k := range in {
				x := &in[k]
				believed, ok := expected[x.Batch]
				if x.Kind != engine.BatchDone || !ok {
					continue
				}
				shortest, longest = min(shortest, x.Took), max(longest, x.Took)
				if off := float64(believed)/float64(x.Took) - 1; math.Abs(off) > 0.02 {
					t.Fatalf("batch %d was believed to take %v and took %v (seed 3)", x.Batch, believed, x.Took)
				}
			}
			for k := range out {
				if x := &out[k]; x.Kind == engine.StartBatch && x.Stage == 1 {
					expected[x.Batch] = x.Expected
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(expected) < 100 || longest < 4*shortest {
		t.Errorf("%d batches of %v to %v: lengths did not count", len(expected), shortest, longest)
	}
}

// A query that is too long to be in time on an idle machine is refused at once, with the longest length that is in
// time. One of that length is served in time. Where an app serves late queries it serves long ones.
func TestTooLongQueriesAreRefused(t *testing.T) {
	for _, late := range []serving.LatePolicy{serving.DropLate, serving.ServeLate} {
		c := encoders(1, true, 20*time.Millisecond)
		c.Spec.Apps[0].Late = late
		believed, machines := believedOf(t, c), exactly(t, c, c.Measurements)
		s := profile.StretchesOf(believed)
		knows := profile.ByLength{Profile: believed, Stretches: s, Overheads: s.Overheads(), Measured: s.Overheads()}
		longest := knows.Longest(0, 0, 1, 20*time.Millisecond, 1<<20)
		e, err := systems.System{Router: "priced", Batcher: "asrouted"}.Engine(c.Spec, believed, c.Planner.Provides())
		if err != nil {
			t.Fatal(err)
		}
		ends := make(map[serving.QueryID]engine.Decision)
		var arrivals []workload.Arrival
		for k, length := range []int32{longest, longest + 1, 100 * longest, 5} {
			arrivals = append(arrivals, workload.Arrival{
				At: serving.Time(time.Duration(1+10*k) * time.Second), Items: 1, Length: length, Variant: serving.None,
			})
		}
		_, err = Run(Config{
			Spec: c.Spec, Engine: e, Truth: machines, Initial: c.Plan, Warm: true, Check: true,
			Source: workload.FromSlice(arrivals),
			Observe: func(_ serving.Time, _ []engine.Input, out []engine.Decision) {
				for k := range out {
					if x := out[k]; x.Kind == engine.EndQuery {
						ends[x.Query] = x
					}
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for k := range arrivals {
			x := ends[serving.QueryID(k+1)]
			if refused := k == 1 || k == 2; late == serving.ServeLate && refused {
				if x.Outcome != serving.Served || !x.Late {
					t.Errorf("length %d is %v, want late", arrivals[k].Length, x.Outcome)
				}
			} else if refused {
				want := fmt.Sprintf("length %d: the longest that can be answered in 20ms is %d", arrivals[k].Length,
					longest)
				if x.Outcome != serving.Refused || x.Why() != want || x.Retry {
					t.Errorf("%v, %q, want refused, %q", x.Outcome, x.Why(), want)
				}
			} else if x.Outcome != serving.Served || x.Late {
				t.Errorf("length %d is %v, late %t, of %d at most", arrivals[k].Length, x.Outcome, x.Late, longest)
			}
		}
	}
}

// Three machines get about one and a half times what they carry, in lengths of which the longest takes a hundred times
// as long as the shortest. Who knows the lengths answers many more in time than who takes all for the mean: some 85 of
// 100 instead of 52.
func TestKnowingLengthsPays(t *testing.T) {
	for seed := range uint64(3) {
		arrivals := ofLengths(rand.New(rand.NewPCG(seed, 1)), 6000, 1000)
		known, ignored := inTime(t, arrivals, true), inTime(t, arrivals, false)
		t.Logf("seed %d: %.1f %% are in time with lengths, %.1f %% without", seed, 100*known, 100*ignored)
		if known < ignored+0.1 {
			t.Errorf("seed %d: want at least 10 more with lengths", seed)
		}
	}
}

// inTime is the share of queries that three machines with the default rule answer in time.
func inTime(t *testing.T, arrivals []workload.Arrival, known bool) float64 {
	c := encoders(3, true, 300*time.Millisecond)
	machines := exactly(t, c, c.Measurements)
	if !known {
		c.Measurements.Length = nil
	}
	believed, err := profile.NewTable(c.Spec, c.Measurements, profile.Mean)
	if err != nil {
		t.Fatal(err)
	}
	e, err := systems.System{Router: "priced", Batcher: "asrouted"}.Engine(c.Spec, believed, c.Planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	_, err = Run(Config{
		Spec: c.Spec, Engine: e, Truth: machines, Initial: c.Plan, Warm: true, Check: true,
		Source: workload.FromSlice(arrivals),
		Observe: func(now serving.Time, _ []engine.Input, out []engine.Decision) {
			for k := range out {
				if x := &out[k]; x.Kind == engine.EndQuery && x.Outcome == serving.Served && now <= x.Deadline {
					n++
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return float64(n) / float64(len(arrivals))
}

// The default rule where queries of many lengths wait: more come than the machines carry. ns/op is for each query.
func BenchmarkLengths(b *testing.B) {
	c := encoders(2, true, 200*time.Millisecond)
	believed, machines := believedOf(b, c), exactly(b, c, c.Measurements)
	e, err := systems.System{Router: "priced", Batcher: "asrouted"}.Engine(c.Spec, believed, c.Planner.Provides())
	if err != nil {
		b.Fatal(err)
	}
	arrivals := ofLengths(rand.New(rand.NewPCG(1, 2)), b.N, 620)
	b.ResetTimer()
	served := 0
	r, err := Run(Config{
		Spec: c.Spec, Engine: e, Truth: machines, Initial: c.Plan, Warm: true, Source: workload.FromSlice(arrivals),
		Observe: func(_ serving.Time, _ []engine.Input, out []engine.Decision) {
			for k := range out {
				if x := &out[k]; x.Kind == engine.EndQuery && x.Outcome == serving.Served && !x.Late {
					served++
				}
			}
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(r.Queries)/float64(max(r.Batches, 1)), "queries/batch")
	b.ReportMetric(100*float64(served)/float64(r.Queries), "%intime")
}
