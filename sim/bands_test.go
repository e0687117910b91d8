package sim

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// banded is the result of a run of the example of INFless §3.2: batches of four in 50 ms and an objective of 200 ms, so
// that every instance gets 28 to 80 queries/s, and three seconds to start one.
type banded struct {
	asked            []serving.Time
	demands          []float64
	most             []int // instances by second, at the most
	arrived, ended   []serving.Time
	served           []bool // in time
	batches, queries int
	full             int // batches of four
}

// stepped are Poisson arrivals with one rate for each span of so many seconds.
func stepped(rng *rand.Rand, steps ...float64) []workload.Arrival {
	var out []workload.Arrival
	begin := 0.0
	for k := 0; k < len(steps); k += 2 {
		rate, end := steps[k], begin+steps[k+1]
		for at := begin + rng.ExpFloat64()/rate; at < end; at += rng.ExpFloat64() / rate {
			out = append(out, workload.Arrival{At: serving.Time(at * 1e9), Items: 1, Variant: serving.None, Sample: -1})
		}
		begin = end
	}
	return out
}

func runBanded(t *testing.T, keep string, load []workload.Arrival, until serving.Time) *banded {
	t.Helper()
	return runKeepAlive(t, systems.KeepAliveOptions{Rule: keep}, load, until)
}

func runKeepAlive(t *testing.T, keep systems.KeepAliveOptions, load []workload.Arrival, until serving.Time) *banded {
	t.Helper()
	c := simtest.Uniform(20, 46*time.Millisecond, time.Millisecond, 200*time.Millisecond, 4)
	c.Spec.Apps[0].ColdWait = 20 * time.Second
	c.Measurements.Load = append(c.Measurements.Load, serving.LoadPoint{Load: 3 * time.Second})
	p, err := profile.NewTable(c.Spec, c.Measurements, profile.P95)
	if err != nil {
		t.Fatal(err)
	}
	planner := &simtest.Rated{Limit: 4, Low: 28, Up: 80, BatchTimeout: 150 * time.Millisecond}
	e, err := systems.System{
		Router: "bands", Batcher: "filltimeout", Scaler: "ratebands", Options: systems.Options{KeepAlive: keep},
	}.
		Engine(c.Spec, p, planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Exact, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := &banded{
		most: make([]int, until/1e9+1), arrived: make([]serving.Time, len(load)),
		ended: make([]serving.Time, len(load)), served: make([]bool, len(load)),
	}
	_, err = Run(Config{
		Spec: c.Spec, Engine: e, Truth: tr, Initial: &plan.Plan{}, Source: workload.FromSlice(load), Planner: planner,
		PlanDelay: 50 * time.Millisecond, Check: until <= 60e9, Limit: until,
		Observe: func(now serving.Time, _ []engine.Input, decisions []engine.Decision) {
			for i := range decisions {
				switch d := &decisions[i]; d.Kind {
				case engine.RequestPlan:
					out.asked, out.demands = append(out.asked, now), append(out.demands, d.Request.Rates[0])
				case engine.StartBatch:
					out.batches++
					out.queries += len(d.Tasks)
					if len(d.Tasks) == 4 {
						out.full++
					}
				case engine.EndQuery:
					out.arrived[d.Query-1], out.ended[d.Query-1] = d.Arrived, now
					out.served[d.Query-1] = d.Outcome == serving.Served && !d.Late
				}
			}
			s := now / 1e9
			out.most[s] = max(out.most[s], len(e.Fleet().Live()))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// between returns how many plans were asked for in a span of seconds, and the share of the queries arriving in it that
// were not answered in time.
func (b *banded) between(from, to serving.Time) (plans int, late float64) {
	n := 0.0
	for _, at := range b.asked {
		if at >= from*1e9 && at < to*1e9 {
			plans++
		}
	}
	for k, at := range b.arrived {
		if b.ended[k] > 0 && at >= from*1e9 && at < to*1e9 {
			n++
			if !b.served[k] {
				late++
			}
		}
	}
	return plans, late / max(n, 1)
}

// instances returns the largest number of instances in a span of seconds.
func (b *banded) instances(from, to int) int {
	n := 0
	for _, m := range b.most[from:to] {
		n = max(n, m)
	}
	return n
}

// A load that steps up and down gets the instances it needs within seconds, and no plan while it is constant. When it
// is over, the last instance goes, and a later query is answered.
func TestBandsFollowTheLoad(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		rng := rand.New(rand.NewPCG(seed, 8))
		load := stepped(rng, 100, 60, 600, 60, 100, 90)
		load = append(load, workload.Arrival{At: 900e9, Items: 1, Variant: serving.None, Sample: -1})
		b := runBanded(t, "keepalive", load, 1000e9)
		for _, s := range []struct {
			from, to serving.Time
			plans    int
			late     float64
			least    int
			most     int
		}{
			{10, 60, 2, 0.01, 2, 3}, {75, 120, 2, 0.01, 8, 11}, {145, 210, 2, 0.01, 2, 3},
		} {
			plans, late := b.between(s.from, s.to)
			if n := b.instances(int(s.from), int(s.to)); plans > s.plans || late > s.late || n < s.least || n > s.most {
				t.Errorf("seed %d, %d to %d s: %d plans, %.2f %% late, %d instances", seed, s.from, s.to, plans,
					100*late, n)
			}
		}
		if n := b.instances(560, 890); n != 0 {
			t.Errorf("seed %d: %d instances of an app that nobody calls", seed, n)
		}
		last := len(load) - 1
		if waited := b.ended[last] - b.arrived[last]; waited < 3e9 || waited > 4e9 {
			t.Errorf("seed %d: a query that found nothing warm was answered after %v", seed, waited)
		}
		if share := float64(b.full) / float64(b.batches); share < 0.5 {
			t.Errorf("seed %d: only %.0f %% of the batches were full", seed, 100*share)
		}
	}
}

// Instances stay for the linger time after the load has fallen, and the last one for the app's keep-alive. 600
// queries/s need at least eight instances, 100 need two.
func TestBandsLinger(t *testing.T) {
	for seed := uint64(1); seed <= longtest.Of(uint64(2), 5); seed++ {
		for _, linger := range []int{0, 30, 60} {
			rng := rand.New(rand.NewPCG(seed, 11))
			b := runKeepAlive(t, systems.KeepAliveOptions{
				Linger: time.Duration(linger) * time.Second,
			}, stepped(rng, 600, 60, 100, 120), 180e9)
			stays := max(linger, 10)
			least := math.MaxInt
			for _, n := range b.most[60 : 60+stays] {
				least = min(least, n)
			}
			if least < 8 {
				t.Errorf("seed %d: %d instances within %d s of the fall", seed, least, stays)
			}
			if n := b.instances(60+stays+12, 180); n > 3 {
				t.Errorf("seed %d: %d instances after they have lingered for %d s", seed, n, stays)
			}
		}
	}
}

// A load that jumps to many times the capacity leads, within half a second and not after the usual pause, to a plan for
// at least half of it.
func TestBandsSeeJumps(t *testing.T) {
	for seed := uint64(1); seed <= longtest.Of(uint64(3), 10); seed++ {
		rng := rand.New(rand.NewPCG(seed, 12))
		b := runBanded(t, "lsth", stepped(rng, 20, 30, 800, 30), 60e9)
		at := serving.Never
		for k, asked := range b.asked {
			if asked >= 30e9 && b.demands[k] > 400 {
				at = min(at, asked)
			}
		}
		if at > 30.5e9 {
			t.Errorf("seed %d: half of the jump at 30 s was answered at %v", seed, at)
		}
	}
}

// The queue that builds up during a start does not count as load. From zero to a steady rate, plans never exceed that
// rate and its random variation, and every query that can be answered is.
func TestBandsDoNotCountTheQueueAsLoad(t *testing.T) {
	for seed := uint64(1); seed <= longtest.Of(uint64(3), 10); seed++ {
		rng := rand.New(rand.NewPCG(seed, 9))
		b := runBanded(t, "keepalive", stepped(rng, 200, 60), 60e9)
		for k, d := range b.demands {
			if d > 200*1.4 {
				t.Errorf("seed %d: at %v a plan for %v queries/s was asked for, 200 come", seed, b.asked[k], d)
			}
		}
		if n := b.instances(0, 60); n > 4 {
			t.Errorf("seed %d: %d instances, 200 queries/s need 3", seed, n)
		}
		if _, late := b.between(20, 59); late > 0.02 {
			t.Errorf("seed %d: %.1f %% late after the start", seed, 100*late)
		}
	}
}

// A steady load leads to no plans, wherever it lies in the band of its instances.
func TestBandsDoNotOscillate(t *testing.T) {
	total := 0
	for seed := uint64(1); seed <= longtest.Of(uint64(4), 12); seed++ {
		rng := rand.New(rand.NewPCG(seed, 10))
		rate := 20 * math.Pow(50, rng.Float64())
		b := runBanded(t, "lsth", stepped(rng, rate, 120), 120e9)
		plans, late := b.between(20, 120)
		total += plans
		if plans > 4 || late > 0.03 {
			t.Errorf("seed %d: at a steady %.0f queries/s %d plans in 100 s, %.1f %% late", seed, rate, plans, 100*late)
		}
	}
	t.Logf("%d plans in 20 minutes of steady loads", total)
}

// Instances of different sizes each get the rate of INFless §3.2, case ii, and run batches of their own size: four and
// two, at 100 queries/s between 42 and 120.
func TestBandsFillEveryInstancesOwnBatches(t *testing.T) {
	c := simtest.Uniform(2, 46*time.Millisecond, time.Millisecond, 200*time.Millisecond, 4)
	bands := &plan.Plan{Instances: []plan.Instance{
		{
			Worker: 0, Slots: 1, Share: 0.5, BatchTimeout: 150 * time.Millisecond, Low: 28, Up: 80,
			Variants: []plan.Variant{{Limit: 4}},
		},
		{
			Worker: 1, Slots: 1, Share: 0.5, BatchTimeout: 152 * time.Millisecond, Low: 14, Up: 40,
			Variants: []plan.Variant{{Limit: 2}},
		},
	}}
	e, err := systems.System{Router: "bands", Batcher: "filltimeout"}.Engine(c.Spec, c.Profile,
		plan.Limits|plan.BatchTimeouts|plan.Bands)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Exact, nil)
	if err != nil {
		t.Fatal(err)
	}
	var batches, queries, full [3]float64
	late, all := 0.0, 0.0
	_, err = Run(Config{
		Spec: c.Spec, Engine: e, Truth: tr, Initial: bands, Warm: true, Check: true,
		Source: workload.FromSlice(stepped(rand.New(rand.NewPCG(1, 11)), 100, 100)),
		Observe: func(now serving.Time, _ []engine.Input, out []engine.Decision) {
			for i := range out {
				switch d := &out[i]; d.Kind {
				case engine.StartBatch:
					batches[d.Instance]++
					queries[d.Instance] += float64(d.Items)
					if int(d.Items) == e.Fleet().Instance(d.Instance).Limit() {
						full[d.Instance]++
					}
				case engine.EndQuery:
					all++
					if d.Outcome != serving.Served || d.Late {
						late++
					}
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	share, want := queries[1]/(queries[1]+queries[2]), (80-20.0/78*52)/100
	t.Logf("%.1f %% to the larger, %.0f and %.0f %% of the batches full, %.2f %% late", 100*share,
		100*full[1]/batches[1], 100*full[2]/batches[2], 100*late/all)
	if math.Abs(share-want) > 0.02 || full[1] < 0.7*batches[1] || full[2] < 0.7*batches[2] || late > 0.03*all {
		t.Errorf("%.1f %% to the larger, want %.1f; %v of %v batches full, %v of %v queries late", 100*share, 100*want,
			full[1:], batches[1:], late, all)
	}
}

// fullFleetPlanner is a planner whose fleet has room for nothing.
type fullFleetPlanner struct{ *simtest.Rated }

func (fullFleetPlanner) Plan(_ context.Context, r plan.Request) (*plan.Plan, error) {
	return plan.Empty("roomless", r.Snapshot), nil
}

// Queries without a late policy, for an app that no plan has room for, fail after somewhat more than ten seconds, every
// one of them. Plans are requested ever more seldom.
func TestBandsWithoutRoom(t *testing.T) {
	c := simtest.Uniform(1, 46*time.Millisecond, time.Millisecond, 200*time.Millisecond, 4)
	c.Spec.Apps[0].Late = serving.ServeLate
	p, err := profile.NewTable(c.Spec, c.Measurements, profile.P95)
	if err != nil {
		t.Fatal(err)
	}
	planner := fullFleetPlanner{&simtest.Rated{Limit: 4, Low: 28, Up: 80}}
	e, err := systems.System{
		Router: "bands", Batcher: "filltimeout", Scaler: "ratebands",
	}.Engine(c.Spec, p, planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Exact, nil)
	if err != nil {
		t.Fatal(err)
	}
	load := stepped(rand.New(rand.NewPCG(1, 13)), 2, 120)
	asked, failed, least, most := 0, 0, time.Duration(math.MaxInt64), time.Duration(0)
	_, err = Run(Config{
		Spec: c.Spec, Engine: e, Truth: tr, Initial: &plan.Plan{}, Source: workload.FromSlice(load), Planner: planner,
		PlanDelay: 20 * time.Millisecond, Check: true,
		Observe: func(now serving.Time, _ []engine.Input, decisions []engine.Decision) {
			for i := range decisions {
				switch d := &decisions[i]; d.Kind {
				case engine.RequestPlan:
					asked++
				case engine.EndQuery:
					if d.Outcome == serving.Failed && d.Reason == engine.NoRoom {
						failed++
					}
					least, most = min(least, now.Sub(d.Arrived)), max(most, now.Sub(d.Arrived))
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	// 0.1, 0.2, 0.4 ... s apart, and then ten.
	if failed != len(load) || least < 10*time.Second || most > 21*time.Second || asked > 8+130/10 {
		t.Errorf("%d of %d queries failed, after %v to %v; %d plans were asked for", failed, len(load), least, most,
			asked)
	}
	t.Logf("%d plans, queries fail after %v to %v", asked, least, most)
}
