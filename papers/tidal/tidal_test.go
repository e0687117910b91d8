package tidal

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/sluice-serving/sluice/internal/algo/mdp"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// ladder are models that are the slower the more accurate they are, with batches that gain something by being large.
func ladder(rng *rand.Rand, models, longest int) []Model {
	var out []Model
	accuracy, first := 0.4+0.3*rng.Float64(), 5+10*rng.Float64()
	for k := range models {
		m := Model{Variant: serving.VariantID(k), Accuracy: accuracy}
		each := first * (0.4 + 0.5*rng.Float64())
		for b := range longest {
			m.Latency = append(m.Latency, time.Duration((first+each*float64(b))*float64(time.Millisecond)))
		}
		out = append(out, m)
		accuracy += (1 - accuracy) * 0.5 * rng.Float64()
		first *= 1.2 + rng.Float64()
	}
	return out
}

func TestBandAgainstDense(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		n, below, above := 1+rng.IntN(20), 1+rng.IntN(4), 1+rng.IntN(4)
		m, d := newBandMatrix(n, below, above), mat.NewDense(n, n, nil)
		for r := range n {
			sum := 0.0
			for c := max(r-below, 0); c <= min(r+above, n-1); c++ {
				if c != r {
					x := -rng.Float64()
					m.row(r)[c-r+below] = x
					d.Set(r, c, x)
					sum -= x
				}
			}
			x := sum * (1 + 0.01*rng.Float64())
			if n == 1 {
				x = 1
			}
			m.row(r)[below] = x + 1e-3
			d.Set(r, r, x+1e-3)
		}
		b, one := make([]float64, n), mat.NewVecDense(n, nil)
		for r := range b {
			b[r] = rng.NormFloat64()
			one.SetVec(r, b[r])
		}
		var want mat.VecDense
		if err := want.SolveVec(d, one); err != nil {
			t.Fatal(err)
		}
		m.solve(b)
		for r := range b {
			if math.Abs(b[r]-want.AtVec(r)) > 1e-7*(1+math.Abs(want.AtVec(r))) {
				t.Fatalf("seed %d: x[%d] is %v, want %v", seed, r, b[r], want.AtVec(r))
			}
		}
	}
}

// The elimination adds and multiplies in the order of plain loops: the solution is the same to the last digit.
func TestBandAgainstPlainLoops(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 60 {
		n, below, above := 1+rng.IntN(40), 1+rng.IntN(6), 1+rng.IntN(9)
		m, plain := newBandMatrix(n, below, above), newBandMatrix(n, below, above)
		right, want := make([]float64, n), make([]float64, n)
		for r := range n {
			right[r] = rng.NormFloat64()
			for k := range m.row(r) {
				if rng.IntN(2) == 0 {
					m.row(r)[k] = -rng.Float64() / float64(below+above+1)
				}
			}
			m.row(r)[below] = 1
		}
		copy(want, right)
		copy(plain.rows, m.rows)
		m.solve(right)
		for c := range n {
			for r := c + 1; r <= min(c+below, n-1); r++ {
				f := plain.row(r)[c-r+below] / plain.row(c)[below]
				for k := c + 1; k <= min(c+above, n-1); k++ {
					plain.row(r)[k-r+below] -= f * plain.row(c)[k-c+below]
				}
				want[r] -= f * want[c]
			}
		}
		for c := n - 1; c >= 0; c-- {
			for k := c + 1; k <= min(c+above, n-1); k++ {
				want[c] -= plain.row(c)[k-c+below] * want[k]
			}
			want[c] /= plain.row(c)[below]
		}
		if !slices.Equal(right, want) {
			t.Fatalf("%d x %d+%d: %v, want %v", n, below, above, right, want)
		}
	}
}

// The nodes keep the mean of so many gaps exactly and all but a fifth of the variance.
func TestGaps(t *testing.T) {
	for n := 1; n <= 32; n++ {
		sum, square := 0.0, 0.0
		for _, g := range erlangMeans(n) {
			sum += g / gapNodes
			square += g * g / gapNodes
		}
		if v := square - sum*sum; math.Abs(sum-float64(n)) > 1e-9 || v > float64(n) || v < 0.8*float64(n) {
			t.Errorf("%d gaps: mean %v, variance %v", n, sum, v)
		}
	}
}

// explicit is the same process written out, action by action, with what each takes.
func (x *process) explicit() (p *mdp.Process, takes []float64) {
	p = &mdp.Process{First: []int32{0}}
	for s := range x.n {
		for i := range x.actions {
			a := &x.actions[i]
			p.Reward, takes = append(p.Reward, x.reward(s, a)), append(takes, a.size)
			to := make(map[int]float64)
			for k := range gapNodes {
				y := x.next(s, a, k, x.busy(s))
				c := min(int(y), x.n-2)
				to[c] += (1 - (y - float64(c))) / gapNodes
				to[c+1] += (y - float64(c)) / gapNodes
			}
			for c := range x.n {
				if w := to[c]; w > 0 {
					p.Next.Add(c, w)
				}
			}
			p.Next.End()
		}
		p.First = append(p.First, int32(len(p.Reward)))
	}
	return p, takes
}

// valueIteration encloses the most that the actions of a process bring for what they take. It iterates on the
// uniformised process (Puterman §8.5, §11.4) until the bounds are within so much of each other, or after so many
// sweeps.
func valueIteration(p *mdp.Process, takes []float64, within float64, sweeps int, from []float64) (low, high float64) {
	step := 0.95 * slices.Min(takes) // below the least, so that a part of every state stays in place
	values, next := slices.Clone(from), make([]float64, len(from))
	low, high = math.Inf(-1), math.Inf(1)
	for n := 0; n < sweeps && !(high-low <= within); n++ {
		least, most := math.Inf(1), math.Inf(-1)
		for s := range next {
			best := math.Inf(-1)
			for a := p.First[s]; a < p.First[s+1]; a++ {
				best = max(best, (p.Reward[a]+p.Next.Dot(int(a), values)-values[s])/takes[a])
			}
			next[s] = values[s] + step*best
			least, most = min(least, best), max(most, best)
		}
		base := next[0]
		for s := range next {
			next[s] -= base
		}
		values, next = next, values
		low, high = max(low, least), min(high, most)
	}
	return low, high
}

// The gain of policy iteration lies within the bounds of value iteration without discounting, and its values satisfy
// the optimality equation.
func TestAgainstValueIteration(t *testing.T) {
	for seed := uint64(1); seed <= 6; seed++ {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := &Pool{Workers: 2 + rng.IntN(6), SLO: 80 * time.Millisecond, Models: ladder(rng, 3, 3), LateShare: 1}
		p.Rate = p.maxRate() * (0.3 + 0.5*rng.Float64())
		x := newProcess(p, 0.02, 1)
		x.policyIteration()
		e, takes := x.explicit()
		low, high := valueIteration(e, takes, 2e-5, 40000, x.value)
		if high-low > 2e-5 {
			t.Fatalf("seed %d: value iteration says between %v and %v", seed, low, high)
		}
		if x.gain < low-4e-5 || x.gain > high+4e-5 {
			t.Errorf("seed %d: %v for a query, value iteration says between %v and %v", seed, x.gain, low, high)
		}
		for s := range x.n {
			best := math.Inf(-1)
			for i := range x.actions {
				b := &x.actions[i]
				best = math.Max(best, x.reward(s, b)-x.gain*b.size+x.expectedValue(s, b, x.busy(s)))
			}
			if math.Abs(best-x.value[s]) > 2e-3*(1+math.Abs(best)) {
				t.Errorf("seed %d: state %d is worth %v, its best action brings %v", seed, s, x.value[s], best)
			}
		}
	}
}

// fluid is what the pool could do at best if nothing were random: the most accurate mix of batches for which there is
// time.
func fluid(p *Pool) float64 {
	time := float64(p.Workers) / p.Rate
	best := math.Inf(-1)
	for _, a := range p.actions() {
		ca := a.latency / a.size
		if ca > time {
			continue
		}
		best = math.Max(best, a.accuracy)
		for _, b := range p.actions() {
			if cb := b.latency / b.size; cb > time {
				w := (time - ca) / (cb - ca)
				best = math.Max(best, (1-w)*a.accuracy+w*b.accuracy)
			}
		}
	}
	return best
}

// For random models no value function promises more than is possible without chance, a large pool comes near it, more
// load brings less, values fall as the position rises, and no more queries are late than asked.
func TestPrices(t *testing.T) {
	tried := 0
	for seed := uint64(1); seed <= 12; seed++ {
		rng := rand.New(rand.NewPCG(seed, 3))
		p := &Pool{
			Workers: 20 + rng.IntN(60), SLO: 100 * time.Millisecond, Models: ladder(rng, 1+rng.IntN(5), 1+rng.IntN(8)),
			LateShare: 1e-4,
		}
		before := 1.0
		for _, part := range []float64{0.2, 0.4, 0.6, 0.8} {
			p.Rate = part * p.maxRate()
			x, kept := p.Solve(nil)
			if !kept {
				t.Errorf("seed %d: at %v of what the pool carries %v are late", seed, part, x.Promise.Violation)
				continue
			}
			tried++
			most := fluid(p)
			if x.Gain > most+1e-4 || x.Promise.Accuracy < most-0.05 {
				t.Errorf("seed %d: accuracy %v at %v of what the pool carries, at most %v is possible", seed,
					x.Promise.Accuracy, part, most)
			}
			if x.Gain > before+1e-4 {
				t.Errorf("seed %d: %v at %v of what the pool carries, %v at less", seed, x.Gain, part, before)
			}
			before = x.Gain
			if x.Promise.Violation > p.LateShare || x.Promise.Utilization > 1+1e-3 {
				t.Errorf("seed %d: promises %+v", seed, x.Promise)
			}
			for k := range x.Value[1:] {
				if x.Value[k+1] > x.Value[k]+1e-3 {
					t.Errorf("seed %d: position %v is worth %v, the one before %v", seed, k+1-x.Zero, x.Value[k+1],
						x.Value[k])
				}
			}
		}
		p.Rate = 1.05 * p.maxRate()
		if x, kept := p.Solve(nil); kept {
			t.Errorf("seed %d: beyond what the pool carries only %v are to be late", seed, x.Promise.Violation)
		}
	}
	if tried < 40 {
		t.Errorf("%d prices", tried)
	}
}

// One worker type, one model of 10 ms, an objective of 25 ms: by hand. The only batch brings 0.5 whatever happens, a
// busy worker has 5 ms left on average, and at 30 queries/s for a worker 30 % of its time goes.
func TestOneModelByHand(t *testing.T) {
	p := &Pool{
		Rate: 600, Workers: 20, SLO: 25 * time.Millisecond, LateShare: 0.001, Models: []Model{
			{Accuracy: 0.5, Latency: []time.Duration{10 * time.Millisecond}},
		},
	}
	x, kept := p.Solve(nil)
	if !kept || math.Abs(x.Gain-0.5) > 1e-6 || math.Abs(x.Promise.Accuracy-0.5) > 1e-6 || x.Promise.Violation > 1e-9 {
		t.Errorf("%v %+v", kept, x.Promise)
	}
	if math.Abs(x.Promise.Utilization-0.3) > 1e-3 || math.Abs(x.Residual.Seconds()-0.005) > 2e-4 {
		t.Errorf("utilization %v, time left %v", x.Promise.Utilization, x.Residual)
	}
}

// Two models without chance in the way: a pool so large that its fluctuations do not count mixes them as the fluid
// does. 10 ms for 0.5 and 30 ms for 0.9 at 20 ms for each query: half of each, 0.7.
func TestTwoModelsByHand(t *testing.T) {
	p := &Pool{Rate: 50000, Workers: 1000, SLO: 50 * time.Millisecond, LateShare: 0.001, Models: []Model{
		{Variant: 0, Accuracy: 0.5, Latency: []time.Duration{10 * time.Millisecond}}, {
			Variant: 1, Accuracy: 0.9, Latency: []time.Duration{30 * time.Millisecond},
		}}}
	x, kept := p.Solve(nil)
	if !kept || math.Abs(x.Promise.Accuracy-0.7) > 0.002 || x.Promise.Accuracy > 0.7+1e-5 {
		t.Errorf("%v %+v, want nearly 0.7", kept, x.Promise)
	}
	// The price of a worker's time is what the more accurate model takes for what it adds: 0.4 for 20 ms.
	price := (x.At(-1) - x.At(1)) / 2 * p.Rate / float64(p.Workers)
	if math.Abs(price-20) > 1 {
		t.Errorf("a second of a worker is worth %v, want 20", price)
	}
}

func spec(models []Model, workers int) (*serving.Spec, *profile.Table) {
	s := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d", PricePerHour: 2}},
		Apps: []serving.App{
			{
				Name: "a", SLO: serving.SLO{
					Latency: 100 * time.Millisecond, Percentile: 99,
				}, Weight: 1, QueueLimit: 100, Stages: []serving.StageID{0},
			},
		},
		Stages: []serving.Stage{{Name: "s"}},
	}
	var m serving.Measurements
	for _, x := range models {
		s.Stages[0].Variants = append(s.Stages[0].Variants, x.Variant)
		s.Variants = append(s.Variants, serving.Variant{
			Name: "v", Accuracy: x.Accuracy, MaxBatch: len(x.Latency), MemoryBytes: 1 << 20,
		})
		for b, l := range x.Latency {
			m.Latency = append(m.Latency, serving.LatencyPoint{
				Variant: x.Variant, Items: b + 1, Concurrency: 1, Samples: 1, Mean: l, P50: l, P90: l, P95: l, P99: l,
			})
		}
	}
	for range workers {
		s.Workers = append(s.Workers, serving.Worker{Name: "w"})
	}
	t, err := profile.NewTable(s, m, profile.P95)
	if err != nil {
		panic(err)
	}
	return s, t
}

func TestPlanner(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 4))
	models := ladder(rng, 4, 6)
	// of no use
	models = append(models, Model{Variant: 4, Accuracy: models[0].Accuracy / 2, Latency: models[1].Latency})
	s, believed := spec(models, 12)
	p := &Planner{Profile: believed, Options: Options{Rates: 16}}
	first, err := p.Plan(context.Background(), plan.Request{Spec: s, Rates: []float64{200}})
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Instances) != 12 || first.Loads != 12*4 || len(first.Values) != 1 || first.Values[0].Workers != 12 {
		t.Fatalf("%d instances, %d loads", len(first.Instances), first.Loads)
	}
	for _, i := range first.Instances {
		if len(i.Variants) != 4 {
			t.Errorf("variants %v, want all but the last, which is slower and worse than the first", i.Variants)
		}
	}
	rates := first.Values[0].ByRate
	most := (&Pool{SLO: 100 * time.Millisecond, Workers: 12, Models: models}).maxRate()
	if len(rates) < 8 || rates[len(rates)-1].Rate > most {
		t.Errorf("%d rates up to %v, the pool carries %v", len(rates), rates[len(rates)-1].Rate, most)
	}
	if first.Capacity[0] != rates[len(rates)-1].Rate || first.Forecast.Violation > 1e-4 ||
		first.Forecast.Accuracy <= models[0].Accuracy {
		t.Errorf("capacity %v, forecast %+v", first.Capacity, first.Forecast)
	}
	again, err := p.Plan(context.Background(), plan.Request{Spec: s, Rates: []float64{300}})
	if err != nil || &again.Values[0].ByRate[0].Value[0] != &rates[0].Value[0] {
		t.Errorf("a second plan made the prices again (%v)", err)
	}
	p.Options.SingleRate = true
	alone, err := p.Plan(context.Background(), plan.Request{Spec: s, Rates: []float64{200}})
	if err != nil || len(alone.Values[0].ByRate) != 1 || alone.Values[0].ByRate[0].Rate != 200 {
		t.Errorf("for a load that is known: %d prices (%v)", len(alone.Values[0].ByRate), err)
	}
	// Room for two models only: the fastest stays.
	s.DeviceTypes[0].MemoryBytes = 2 << 20
	little, err := (&Planner{Profile: believed, Options: Options{Rates: 4}}).Plan(context.Background(),
		plan.Request{Spec: s, Rates: []float64{200}})
	if err != nil || len(little.Instances[0].Variants) != 2 || little.Instances[0].Variants[0].Variant != 0 {
		t.Errorf("in the memory for two: %v (%v)", little.Instances[0].Variants, err)
	}
	s.Apps[0].SLO.Latency = time.Millisecond
	if _, err := (&Planner{Profile: believed}).Plan(context.Background(),
		plan.Request{Spec: s, Rates: []float64{200}}); err == nil {
		t.Error("an objective that no model meets was planned for")
	}
}

func BenchmarkPrice(b *testing.B) {
	p := &Pool{Workers: 60, SLO: 150 * time.Millisecond, Models: ladder(rand.New(rand.NewPCG(1, 1)), 7, 9),
		LateShare: 1e-4}
	p.Rate = 0.6 * p.maxRate()
	for b.Loop() {
		if _, kept := p.Solve(nil); !kept {
			b.Fatal("not kept")
		}
	}
}

// slower takes by a factor longer.
type slower struct {
	profile.Profile
	factor time.Duration
}

func (s slower) Latency(v serving.VariantID, d serving.DeviceTypeID, items, n int) time.Duration {
	return s.factor * s.Profile.Latency(v, d, items, n)
}

// Latencies believed since the planner was made count in place of its own: plans are those of a planner made with them.
func TestBeliefsOfTheRequest(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 4))
	s, believed := spec(ladder(rng, 4, 6), 12)
	p := &Planner{Profile: believed, Options: Options{Rates: 8}}
	r := plan.Request{Spec: s, Rates: []float64{200}}
	was, err := p.Plan(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	now := slower{believed, 2}
	r.Beliefs = now
	got, err := p.Plan(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	want, err := (&Planner{Profile: now, Options: p.Options}).Plan(context.Background(), plan.Request{
		Spec: s, Rates: r.Rates,
	})
	if err != nil || !reflect.DeepEqual(got, want) || got.Capacity[0] >= was.Capacity[0] {
		t.Errorf("got %v, want %v, was %v, %v", got.Forecast, want.Forecast, was.Forecast, err)
	}
}
