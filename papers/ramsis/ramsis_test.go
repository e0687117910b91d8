package ramsis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/mdp"
	"github.com/sluice-serving/sluice/serving"
)

const msec = time.Millisecond

// line is a model whose batch of b takes base + b*each.
func line(v serving.VariantID, accuracy float64, base, each time.Duration, most int) Model {
	m := Model{Variant: v, Accuracy: accuracy}
	for b := 1; b <= most; b++ {
		m.Latency = append(m.Latency, base+time.Duration(b)*each)
	}
	return m
}

// three models as a worker might have them.
func three(most int) []Model {
	return []Model{
		line(0, 0.6, 5*msec, 12*msec, most), line(1, 0.75, 10*msec, 25*msec, most),
		line(2, 0.85, 20*msec, 50*msec, most),
	}
}

func TestPareto(t *testing.T) {
	all := append(three(4), line(3, 0.7, 15*msec, 30*msec, 4), line(4, 0.75, 10*msec, 25*msec, 4),
		line(5, 0.9, 20*msec, 50*msec, 3))
	var got []serving.VariantID
	for _, m := range Pareto(all) {
		got = append(got, m.Variant)
	}
	// 3 is slower and worse than 1; 4 is 1 again; 5 takes smaller batches than 2.
	if !slices.Equal(got, []serving.VariantID{0, 1, 2, 5}) {
		t.Errorf("%v", got)
	}
}

func TestSlacks(t *testing.T) {
	w := &Worker{SLO: 100 * msec, MaxQueue: 2, Levels: 4, Models: three(2)}
	if got := w.slacks(); !slices.Equal(got, []time.Duration{0, 25 * msec, 50 * msec, 75 * msec, 100 * msec}) {
		t.Errorf("fixed lengths: %v", got)
	}
	w.Levels = 0
	// Latencies of batches of one and two below the objective: 17, 29; 35, 60; 70 (and 120, which is beyond it).
	if got := w.slacks(); !slices.Equal(got, []time.Duration{
		0, 17 * msec, 29 * msec, 35 * msec, 60 * msec, 70 * msec, 100 * msec,
	}) {
		t.Errorf("by model: %v", got)
	}
}

// One worker that gets every query, one model, queues of at most one: arrivals during a batch by hand.
func TestByHand(t *testing.T) {
	w := &Worker{
		SLO: 100 * msec, Workers: 1, Arrivals: Poisson(20), Models: []Model{line(0, 0.8, 0, 50*msec, 1)}, MaxQueue: 1,
		Levels: 1,
	}
	p := newProblem(w)
	// States (1, 0), (1, SLO), overflow. A batch takes 50 ms. With probability exp(-1) no query arrives. With exp(-1)
	// exactly one does, which then has between 50 and 100 ms left, rounded down to 0. Otherwise the queue is too long.
	if p.States() != 3 || len(p.Reward) != 3 {
		t.Fatalf("%d states and %d actions", p.States(), len(p.Reward))
	}
	to := make([]float64, 3)
	columns, weights := p.Next.Row(1)
	for k, c := range columns {
		p.Spread.Scatter(int(c), weights[k], to)
	}
	e := math.Exp(-1)
	for s, want := range []float64{e, e, 1 - 2*e} {
		if math.Abs(to[s]-want) > 1e-4 {
			t.Errorf("to state %d with %v, want %v", s, to[s], want)
		}
	}
	// With few arrivals every query finds the worker free: accuracy 0.8 and hardly a violation.
	w.Arrivals = Poisson(0.01)
	x, err := w.Solve(t.Context())
	if err != nil || math.Abs(x.Promise.Accuracy-0.8) > 1e-9 || x.Promise.Violation > 1e-3 ||
		math.Abs(x.Promise.Utilization-0.0005) > 1e-6 {
		t.Errorf("%+v, %v", x, err)
	}
}

// variety returns workers of all kinds.
func variety() map[string]*Worker {
	out := make(map[string]*Worker)
	add := func(name string, w Worker) {
		w.SLO, w.Models, w.MaxQueue = 150*msec, three(6), 6
		if w.Levels == 0 {
			w.Levels = 30
		} else if w.Levels < 0 {
			w.Levels = 0
		}
		out[name] = &w
	}
	add("alone", Worker{Workers: 1, Arrivals: Poisson(25)})
	add("of eight", Worker{Workers: 8, Arrivals: Poisson(250)})
	add("of eight, by model", Worker{Workers: 8, Arrivals: Poisson(250), Levels: -1})
	add("of eight, variable", Worker{Workers: 8, Arrivals: Poisson(250), Variable: true})
	add("of eight, dropping", Worker{Workers: 8, Arrivals: Poisson(300), Drop: true})
	add("of eight, variable and dropping", Worker{Workers: 8, Arrivals: Poisson(300), Drop: true, Variable: true})
	add("of eight, regular gaps", Worker{Workers: 8, Arrivals: Gamma{PerSecond: 250, Shape: 6}})
	add("of eight, bursts", Worker{Workers: 8, Arrivals: Gamma{PerSecond: 150, Shape: 0.3}})
	add("shortest queue", Worker{Workers: 8, Arrivals: Poisson(250), Balance: ShortestQueue})
	return out
}

// Every row of every kind of worker adds up to one, and what the tables promise lies between the models' accuracies.
func TestRowsAddUp(t *testing.T) {
	for name, w := range variety() {
		p := newProblem(w)
		for what, rows := range map[string]*mdp.Rows{"action": &p.Next, "node": p.Spread} {
			for i := range rows.Len() {
				sum := 0.0
				_, weights := rows.Row(i)
				for _, x := range weights {
					sum += x
				}
				if math.Abs(sum-1) > 1e-9 || slices.Min(weights) < 0 {
					t.Errorf("%s: the probabilities of %s %d add up to %v", name, what, i, sum)
				}
			}
		}
		x, err := w.Solve(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m := x.Promise; m.Accuracy < 0.6 || m.Accuracy > 0.85 || m.Violation < 0 || m.Violation > 0.5 ||
			m.Worst99Accuracy > m.MedianAccuracy || m.Utilization <= 0 || m.Utilization > 1 {
			t.Errorf("%s: promises %+v", name, m)
		}
	}
}

// gaps draws the times between arrivals.
func gaps(a Arrivals, rng *rand.Rand) func() float64 {
	switch a := a.(type) {
	case Poisson:
		return func() float64 { return rng.ExpFloat64() / float64(a) }
	case Gamma:
		return func() float64 { return draw(rng, a.Shape) / (a.PerSecond * a.Shape) }
	}
	panic("unknown arrivals")
}

// draw of a gamma distribution of scale one (Marsaglia and Tsang 2000).
func draw(rng *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return draw(rng, shape+1) * math.Pow(rng.Float64(), 1/shape)
	}
	d := shape - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := (1 + c*x) * (1 + c*x) * (1 + c*x)
		if v > 0 && math.Log(rng.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

// observe simulates one worker among several that get arrivals in turn, under a policy, without any of the package's
// probabilities, and returns the shares of its decisions by state; and of its queries, those in time and their
// accuracy.
func observe(p *problem, policy mdp.Policy, rng *rand.Rand, decisions int) (share []float64, violation,
	accuracy float64) {
	share = make([]float64, p.States())
	next := gaps(p.Arrivals, rng)
	at, turn := 0.0, 0
	arrival := func() float64 { // the worker's next
		for {
			at += next()
			if turn++; turn%p.Workers == 0 {
				return at
			}
		}
	}
	slo := seconds(p.SLO)
	now, coming := 0.0, arrival()
	var queue []float64 // of arrivals
	good, queries := 0, 0
	for n := 0; n < decisions; {
		if len(queue) == 0 {
			now = max(now, coming)
		}
		for coming <= now {
			queue = append(queue, coming)
			coming = arrival()
		}
		s, left := p.overflow(), queue[0]+slo-now
		if len(queue) <= p.MaxQueue {
			level := 0
			for level+1 < len(p.levels) && seconds(p.levels[level+1]) <= left+1e-12 {
				level++
			}
			s = p.state(len(queue), level)
		} else {
			queue = queue[len(queue)-p.MaxQueue:] // §4.2.3: queries beyond the longest queue are lost
		}
		n++
		share[s] += 1 / float64(decisions)
		a := &p.actions[policy[s]]
		took := seconds(p.latency(a))
		for _, came := range queue[:a.batch] {
			queries++
			if a.model >= 0 && now+took <= came+slo+1e-12 {
				good++
				accuracy += p.Models[a.model].Accuracy
			}
		}
		queue = queue[a.batch:]
		now += took
	}
	return share, 1 - float64(good)/float64(queries), accuracy / float64(good)
}

// The chain of every kind of worker against a simulation of one worker: the shares of the decisions by length of the
// queue and slack, and that the promise is kept. Slack is rounded down at every step of the chain but only where it is
// looked at in the simulation, so the chain sees slightly older queues; finer levels bring the two together.
func TestAgainstMonteCarlo(t *testing.T) {
	for name, w := range variety() {
		if w.Balance == ShortestQueue {
			continue // an approximation, in which a worker alone cannot be simulated
		}
		if w.Levels > 0 {
			w.Levels = 150
		}
		p := newProblem(w)
		policy, _ := p.FiniteHorizon(lookahead)
		promise := p.promise(policy)
		chain := p.Stationary(policy, p.state(1, len(p.levels)-1), 1e-12, 100000)
		seed := uint64(len(name))
		const n = 400_000
		seen, violation, accuracy := observe(p, policy, rand.New(rand.NewPCG(seed, 7)), n)
		// By length of the queue, then by tenths of the objective.
		byLength, bySlack := make([]float64, w.MaxQueue+2), make([]float64, 11)
		for s := range chain {
			length, level := w.MaxQueue+1, 0
			if s < p.overflow() {
				length, level = s%w.MaxQueue+1, s/w.MaxQueue
			}
			byLength[length] += seen[s] - chain[s]
			bySlack[int(10*p.levels[level]/w.SLO)] += seen[s] - chain[s]
		}
		within := 0.004
		switch {
		case w.Levels == 0:
			within = 0.06 // few levels: slack is rounded down by much
		case w.Variable || w.Drop:
			within = 0.05 // how many come during a batch and how old what is left behind is are not independent
		}
		if _, poisson := w.Arrivals.(Poisson); !poisson {
			within = 0.03 // the gap under way when a batch begins is not a fresh one
		}
		worst := 0.0
		for _, d := range slices.Concat(byLength, bySlack) {
			worst = max(worst, math.Abs(d))
		}
		text := fmt.Sprintf(
			"%s (seed %d): shares differ by up to %.4f; promised %.4f and %.4f %%, seen %.4f and %.4f %%", name, seed,
			worst, promise.Accuracy, 100*promise.Violation, accuracy, 100*violation)
		t.Log(text)
		if worst > within {
			t.Errorf("%s: want at most %v", text, within)
		}
		if math.Abs(accuracy-promise.Accuracy) > within/2 {
			t.Errorf("%s: accuracies differ by more than %v", text, within/2)
		}
		_, poisson := w.Arrivals.(Poisson)
		if poisson && !w.Variable && (violation > promise.Violation+4*math.Sqrt(promise.Violation/n)+1e-4 ||
			accuracy < promise.Accuracy-2e-4) {
			t.Errorf("%s: the promise is not kept", text)
		}
	}
}

// Probabilities of counts add up and agree with the mean.
func TestArrivals(t *testing.T) {
	for _, a := range []Arrivals{Poisson(40), Gamma{40, 1}, Gamma{40, 5}, Gamma{40, 0.2}} {
		for _, x := range []float64{0.01, 0.1, 0.7} {
			sum, mean := 0.0, 0.0
			for k := range 2000 {
				share := math.Exp(a.LogCount(k, x))
				sum += share
				mean += float64(k) * share
			}
			after := 0.0 // an arrival, a burst brings more and a regular stream less than the mean
			for k := range 2000 {
				after += float64(k) * math.Exp(a.LogAfter(k, x))
			}
			if math.Abs(sum-1) > 1e-7 || math.Abs(mean-40*x) > 1e-6 {
				t.Errorf("%v in %v s: %v in all, mean %v", a, x, sum, mean)
			}
			if g, ok := a.(Gamma); ok && g.Shape != 1 && (after > mean) != (g.Shape < 1) {
				t.Errorf("%v in %v s: mean %v, after an arrival %v", a, x, mean, after)
			}
		}
	}
	for k := range 20 {
		if p, g := Poisson(40).LogCount(k, 0.2), (Gamma{40, 1}).LogCount(k, 0.2); math.Abs(p-g) > 1e-6 {
			t.Errorf("%d arrivals: Poisson %v, gamma of shape 1 %v", k, p, g)
		}
	}
}

func TestErrors(t *testing.T) {
	for name, spoil := range map[string]func(w *Worker){
		"no objective":            func(w *Worker) { w.SLO = 0 },
		"nobody":                  func(w *Worker) { w.Workers = 0 },
		"no queue":                func(w *Worker) { w.MaxQueue = 0 },
		"no arrivals":             func(w *Worker) { w.Arrivals = Poisson(0) },
		"no models":               func(w *Worker) { w.Models = nil },
		"a falling latency":       func(w *Worker) { w.Models[0].Latency[2] = 1 },
		"shortest queue of gamma": func(w *Worker) { w.Balance, w.Arrivals = ShortestQueue, Gamma{1, 1} },
	} {
		w := variety()["of eight"]
		spoil(w)
		if _, err := w.Solve(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
