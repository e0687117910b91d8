package rules

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/ruletest"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// priced is a plan with values whose slope grows with the position.
func priced(workers int, rate, steep float64) *plan.Plan {
	x := plan.ValueFunction{Rate: rate, Residual: 20 * time.Millisecond, Gain: 0.75, LatePenalty: 1, PerQuery: 1,
		Zero: 40}
	for k := range 160 {
		at := float64(k - x.Zero)
		x.Value = append(x.Value, -steep*(at+at*at/200+10))
	}
	return &plan.Plan{Values: []plan.ValueFunctions{{Stage: 0, Workers: workers, ByRate: []plan.ValueFunction{x}}}}
}

// A pool runs for a while. Every choice of a batch is compared with a search through all variants, sizes and runs of
// consecutive queries that uses the plan and none of the rule's tables. In the end everything is served.
func TestTidalAgainstSearch(t *testing.T) {
	const slo = 60 * time.Millisecond
	chosen, waited, cleared := 0, 0, 0
	for seed := uint64(1); seed <= 30; seed++ {
		rng := rand.New(rand.NewPCG(seed, 8))
		workers := 1 + rng.IntN(6)
		f := ruletest.Ladder(workers, 1+rng.IntN(4), 1+rng.IntN(6), slo, serving.ServeLate)
		rate := float64(workers) * (20 + 400*rng.Float64())
		p := priced(workers, rate, 0.002+0.02*rng.Float64())
		o, mon := NewTidal(), monitor.NewRates(1)
		now, id, batch, served := serving.Time(0), 0, serving.BatchID(0), 0
		ends := func() serving.Time {
			next := serving.Never
			for _, i := range f.Ready(0) {
				if i.Running() > 0 {
					next = min(next, i.Batch(0).Expected)
				}
			}
			return next
		}
		arrival := serving.Time(rng.ExpFloat64() / rate * 1e9)
		for step := 0; step < 2000; step++ {
			if id < 300 && arrival <= ends() {
				now = arrival
				id++
				mon.Add(now, 0)
				ruletest.AddWaiting(f, id, 1, now.Add(slo))
				arrival = now + serving.Time(rng.ExpFloat64()/rate*1e9)
			} else if at := ends(); at != serving.Never {
				now = at
				for _, i := range f.Ready(0) {
					if i.Running() > 0 && i.Batch(0).Expected == now {
						b, _ := f.Finish(i, i.Batch(0).ID, now)
						for r := b.Head; r != fleet.Nil; {
							next := f.Next(r)
							f.Release(r)
							served++
							r = next
						}
					}
				}
			} else {
				break
			}
			want := search(f, p, now, slo, mon.Recent(now, 0))
			before := f.Central(0).Len()
			o.Route(ruletest.ViewWith(f, now, p, mon))
			first := true
			for _, i := range f.Ready(0) {
				if i.Queue().Len() == 0 {
					continue
				}
				var got found
				got.variant, got.size = i.Choice(), i.Queue().Len()
				for r := i.Queue().Head(); r != fleet.Nil; r = f.Next(r) {
					if f.Task(r).Deadline() < now.Add(fastest(f)) {
						got.late = true
					} else if got.first == 0 {
						got.first = f.Task(r).Query()
					}
				}
				if got.late {
					cleared++
				} else if first {
					if got.variant != want.variant || got.size != want.size || got.first != want.first {
						t.Fatalf("seed %d, step %d: %+v, the search has %+v", seed, step, got, want)
					}
					chosen++
				}
				first = false
				batch++
				takes := f.Latency(i.Choice(), 0, i.Queue().Len(), 1)
				f.Start(i, batch, i.Choice(), i.Queue().Len(), now, takes)
			}
			if first && before > 0 {
				waited++
				if ends() == serving.Never {
					t.Fatalf("seed %d, step %d: all wait though nothing runs that would end", seed, step)
				}
			}
			if err := f.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if served != 300 {
			t.Errorf("seed %d: %d of 300 queries served", seed, served)
		}
	}
	t.Logf("%d batches compared, %d waits, %d late ones cleared", chosen, waited, cleared)
	if chosen < 1000 || waited < 100 || cleared < 10 {
		t.Errorf("%d batches, %d waits, %d late: too few to tell", chosen, waited, cleared)
	}
}

type found struct {
	variant serving.VariantID
	size    int
	first   serving.QueryID // the oldest
	late    bool
}

func fastest(f *fleet.Fleet) time.Duration { return f.Latency(0, 0, 1, 1) }

// search finds the batch by the rule's definition, for the first idle instance.
func search(f *fleet.Fleet, p *plan.Plan, now serving.Time, slo time.Duration, seen float64) found {
	x := &p.Values[0].ByRate[0]
	late := 10 * x.LatePenalty
	if seen > 1.05*x.Rate {
		late = x.LatePenalty
	}
	left := 0.0
	for _, i := range f.Ready(0) {
		if i.Running() > 0 {
			left += i.Batch(0).Expected.Sub(now).Seconds()
		}
	}
	workers := float64(len(f.Ready(0)))
	var list []*fleet.Task
	for r := f.Central(0).Head(); r != fleet.Nil; r = f.Next(r) {
		if f.Task(r).Deadline() >= now.Add(fastest(f)) {
			list = append(list, f.Task(r))
		}
	}
	position := float64(len(list)) + x.Rate*(left/workers-x.Residual.Seconds())
	price := math.Max(x.At(position-1)-x.At(position+1), 0) / 2 * x.Rate / workers
	bring := func(slack time.Duration) float64 {
		best := -late
		for v := range f.Spec().Variants {
			for n := 1; n <= f.Spec().Variants[v].MaxBatch; n++ {
				if l := f.Latency(serving.VariantID(v), 0, n, 1); l <= slack && l <= slo {
					best = math.Max(best, f.Spec().Variants[v].Accuracy-price*l.Seconds()/float64(n))
				}
			}
		}
		return best
	}
	// The expected loss of waiting, over many equally likely waits.
	patience := math.Max(float64(slo)/15, float64(slo)/2/workers)
	loses := func(task *fleet.Task) float64 {
		slack := task.Deadline().Sub(now)
		// Between two latencies what the query brings stays the same.
		steps := []time.Duration{0}
		for v := range f.Spec().Variants {
			for n := 1; n <= f.Spec().Variants[v].MaxBatch; n++ {
				if l := f.Latency(serving.VariantID(v), 0, n, 1); l <= slack && l <= slo {
					steps = append(steps, slack-l)
				}
			}
		}
		slices.Sort(steps)
		sum := 0.0
		for k, from := range steps {
			chance := math.Exp(-float64(from) / patience)
			if k+1 < len(steps) {
				chance -= math.Exp(-float64(steps[k+1]) / patience)
				sum += chance * (bring(slo) - bring(slack-(from+steps[k+1])/2))
			} else {
				sum += chance * (bring(slo) + late)
			}
		}
		return sum
	}
	best, most := found{}, math.Inf(-1)
	for v := range f.Spec().Variants {
		for n := 1; n <= f.Spec().Variants[v].MaxBatch; n++ {
			l := f.Latency(serving.VariantID(v), 0, n, 1)
			at := 0
			for at < len(list) && list[at].Deadline() < now.Add(l) {
				at++
			}
			if at+n > len(list) || l > slo {
				continue
			}
			worth := float64(n)*(f.Spec().Variants[v].Accuracy-x.Gain) +
				x.At(position-float64(n)+x.Rate*l.Seconds()/workers) - x.At(position)
			for _, task := range list[at : at+n] {
				worth += loses(task)
			}
			if worth > most+1e-12 {
				best, most = found{variant: serving.VariantID(v), size: n, first: list[at].Query()}, worth
			}
		}
	}
	return best
}

// The cost of a decision, with 60 workers of which one is idle and twenty waiting queries.
func BenchmarkTidal(b *testing.B) {
	const slo = 150 * time.Millisecond
	f := ruletest.Ladder(60, 4, 8, slo, serving.ServeLate)
	p := priced(60, 2000, 0.005)
	for k, i := range f.Ready(0)[1:] {
		ruletest.AddWaiting(f, 1000+k, 1, serving.Time(time.Second))
		f.Assign(f.Central(0).Head(), i, 0)
		f.Start(i, serving.BatchID(k+1), 0, 1, 0, time.Duration(k+1)*2*time.Millisecond)
	}
	mon := monitor.NewRates(1)
	now := serving.Time(time.Millisecond)
	mon.Add(now, 0)
	for k := range 20 {
		ruletest.AddWaiting(f, k+1, 1, now.Add(slo-time.Duration(20-k)*500*time.Microsecond))
	}
	o := NewTidal()
	v := ruletest.ViewWith(f, now, p, mon)
	s := o.Of(0)
	s.build(v)
	b.ReportAllocs()
	for b.Loop() {
		t := s.observe(v)
		s.collect(v, true)
		t.setLoad(s, mon.Recent(now, 0), 60)
		if x, _ := s.choose(v, &t, s.idle[0]); x == nil {
			b.Fatal("no batch")
		}
	}
}
