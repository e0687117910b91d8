package test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/papers/proteus"
	"github.com/sluice-serving/sluice/policy/plan"
)

// exactly are options under which a plan is an optimum of the program and of nothing else.
func exactly() proteus.Options {
	return proteus.Options{Headroom: 1, Gap: 1e-9, Nodes: 5000, Tolerance: -1, Slack: -1}
}

// equations is the program of Proteus §4 as it stands there: x by device and variant (binary), y by device and
// application, z by device and application. The product of x and z in effective accuracy is w by device and variant,
// which is at most P times x and adds up to z. The objective is over the demand, with the apps' weights, so that it is
// the mean normalised accuracy.
func (w planWorld) equations(demand []float64) *milp.Program {
	p := &milp.Program{Maximize: true}
	total := 0.0
	for q, s := range demand {
		total += s * w.spec.Apps[q].Weight
	}
	variants, apps, devices := len(w.spec.Variants), len(w.spec.Apps), len(w.spec.Workers)
	x, y, z, part := make([][]int, devices), make([][]int, devices), make([][]int, devices), make([][]int, devices)
	for d := range devices {
		for range variants {
			x[d] = append(x[d], p.Column(milp.Column{Upper: 1, Integer: true}))
		}
		for range apps {
			y[d] = append(y[d], p.Column(milp.Column{Upper: 1}))
			z[d] = append(z[d], p.Column(milp.Column{Upper: milp.Inf}))
		}
		for v := range variants {
			part[d] = append(part[d], p.Column(milp.Column{
				Objective: w.spec.Apps[w.spec.Variants[v].Stage].Weight * w.value(v) / total, Upper: milp.Inf,
			}))
		}
	}
	for d := range devices {
		var one, routed []milp.Term
		for v := range variants {
			one = append(one, milp.Term{Column: x[d][v], Coef: 1})
			p.Row(-milp.Inf, 0, milp.Term{Column: part[d][v], Coef: 1}, milp.Term{Column: x[d][v], Coef: -w.on(v, d)})
		}
		p.Row(-milp.Inf, 1, one...) // Eq. 1
		for q := range apps {
			supports := []milp.Term{{Column: y[d][q], Coef: 1}}
			peak := []milp.Term{{Column: z[d][q], Coef: 1}}
			sum := []milp.Term{{Column: z[d][q], Coef: -1}}
			for v := range variants {
				if int(w.spec.Variants[v].Stage) == q {
					supports = append(supports, milp.Term{Column: x[d][v], Coef: -1})
					peak = append(peak, milp.Term{Column: x[d][v], Coef: -w.on(v, d)})
					sum = append(sum, milp.Term{Column: part[d][v], Coef: 1})
				}
			}
			p.Row(-milp.Inf, 0, supports...) // Eq. 3
			p.Row(-milp.Inf, 0, peak...)     // Eq. 5
			p.Row(0, 0, sum...)
			routed = append(routed, milp.Term{Column: z[d][q], Coef: 1}, milp.Term{Column: y[d][q], Coef: -demand[q]})
		}
		p.Row(-milp.Inf, 0, routed...) // Eq. 4
	}
	for q, s := range demand {
		var all, served []milp.Term
		for d := range devices {
			all = append(all, milp.Term{Column: y[d][q], Coef: 1})
			served = append(served, milp.Term{Column: z[d][q], Coef: 1})
		}
		p.Row(-milp.Inf, 1, all...) // Eq. 2
		p.Row(s, s, served...)      // Eq. 6
	}
	return p
}

// exactSeeds is how many random worlds are planned exactly.
var exactSeeds = longtest.Of(50, 150)

// The plan of small worlds is as accurate as the best of all assignments of variants to workers, and as the optimum of
// the paper's own program. What is compared is read off the plan's shares.
func TestProteusIsOptimal(t *testing.T) {
	t.Parallel()
	carried, short := 0, 0
	for seed := range uint64(exactSeeds) {
		rng := rand.New(rand.NewPCG(seed, 21))
		w := randomPlanWorld(rng, 2+rng.IntN(2), 3+rng.IntN(3), 1+rng.IntN(3))
		for a := range w.spec.Apps {
			w.spec.Apps[a].Weight = float64(1+rng.IntN(4)) / 2
		}
		demand := w.demands(rng, 0.1+1.2*rng.Float64())
		best := math.Inf(-1)
		w.assignments(func(hosts []int) {
			if items, values := w.served(hosts, demand); w.fully(items, demand) {
				best = max(best, w.mean(values, demand))
			}
		})
		s, err := highstest.Solver(t).Solve(t.Context(), w.equations(demand), milp.Limits{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p := &proteus.Planner{Profile: w.profile, Solver: highstest.Solver(t), Options: exactly()}
		got := planned(t, fmt.Sprint("seed ", seed), p, plan.Request{Spec: w.spec, Rates: demand})
		if math.IsInf(best, -1) {
			short++
			if s.Status != milp.Infeasible || got.Shed == nil {
				t.Fatalf("seed %d: no assignment serves everything; the paper's program is %v, the plan sheds %v", seed,
					s.Status, got.Shed)
			}
			continue
		}
		carried++
		if s.Status != milp.Optimal || !within(s.Objective, best) {
			t.Fatalf("seed %d: the paper's program is %v with %v, the best assignment has %v", seed, s.Status,
				s.Objective, best)
		}
		values := accuracies(w.spec, got)
		for a := range values {
			values[a] *= demand[a]
		}
		value := w.mean(values, demand)
		if got.Shed != nil || !within(value, best) {
			t.Fatalf("seed %d: the plan has %v and sheds %v, the best assignment has %v", seed, value, got.Shed, best)
		}
		if !got.Proven || got.Bound < best-2e-6 || got.Bound > best+2e-6 || got.Gap > 2e-6 {
			t.Fatalf("seed %d: proven %v, bound %v, gap %v; the best assignment has %v", seed, got.Proven, got.Bound,
				got.Gap, best)
		}
	}
	t.Logf("%d worlds carried, %d short", carried, short)
	if carried < exactSeeds/3 || short < exactSeeds/8 {
		t.Errorf("%d worlds carried their demand and %d did not: too few of one kind", carried, short)
	}
}

// Where not all can be served, the worst served app of each weight gets as much as any plan can give it, the heavier
// ones first, and then as many queries are served as can be. All assignments are tried.
func TestProteusShedsTheLeast(t *testing.T) {
	lacking, weighed, unserved := 0, 0, 0
	for seed := range uint64(exactSeeds) {
		rng := rand.New(rand.NewPCG(seed, 22))
		w := randomPlanWorld(rng, 1+rng.IntN(3), 2+rng.IntN(3), 2+rng.IntN(2))
		for a := range w.spec.Apps {
			w.spec.Apps[a].Weight = float64(1 + rng.IntN(2))
		}
		demand := w.demands(rng, 0.8+1.5*rng.Float64())
		queries := 0.0
		for a, d := range demand {
			queries += d * w.spec.Apps[a].Weight
		}
		// least is, by weight, what the worst served app has; part is of all queries, by importance.
		judge := func(items []float64) (least [3]float64, part float64) {
			least = [3]float64{1, 1, 1}
			for a, x := range items {
				k := int(w.spec.Apps[a].Weight)
				least[k] = min(least[k], x/demand[a])
				part += x * w.spec.Apps[a].Weight / queries
			}
			return least, part
		}
		var most [3]float64
		mostPart := 0.0
		w.assignments(func(hosts []int) {
			items, _ := w.served(hosts, demand)
			least, part := judge(items)
			for _, k := range []int{2, 1} {
				switch {
				case least[k] > most[k]+1e-9:
					most, mostPart = least, part
					return
				case least[k] < most[k]-1e-9:
					return
				}
			}
			mostPart = max(mostPart, part)
		})
		if most[1] > 1-1e-9 && most[2] > 1-1e-9 {
			continue
		}
		p := &proteus.Planner{Profile: w.profile, Solver: highstest.Solver(t), Options: exactly()}
		got := planned(t, fmt.Sprint("seed ", seed), p, plan.Request{Spec: w.spec, Rates: demand})
		if got.Shed == nil {
			t.Fatalf("seed %d: the plan says it sheds nothing; the best assignment serves %v and %v", seed, most[1],
				most[2])
		}
		items := make([]float64, len(demand))
		for a := range items {
			items[a] = demand[a] - got.Shed[a]
		}
		// What it says must be what its instances can do.
		able, _ := w.served(hostsOf(w.spec, got), demand)
		for a := range items {
			if !within(items[a], able[a]) {
				t.Fatalf("seed %d, app %d: the plan says it serves %v, its instances serve %v", seed, a, items[a],
					able[a])
			}
		}
		least, part := judge(items)
		if !within(least[1], most[1]) || !within(least[2], most[2]) || !within(part, mostPart) {
			t.Fatalf("seed %d: by weight the worst served apps have %v and %v, all %v; the best assignment %v, %v "+
				"and %v", seed, least[1], least[2], part, most[1], most[2], mostPart)
		}
		lacking++
		if most[1] < most[2]-0.01 {
			weighed++
		}
		if most[1] == 0 || most[2] == 0 {
			unserved++
		}
	}
	t.Logf("%d worlds lack workers, %d of them apps of the lesser weight only, %d leave an app without any", lacking,
		weighed, unserved)
	if lacking < exactSeeds*2/5 || weighed < exactSeeds/15 || unserved < exactSeeds/30 {
		t.Errorf("%d worlds lack workers, %d let the lighter apps lack more, %d leave out some: too few", lacking,
			weighed, unserved)
	}
}

// Each goal's plan reaches what that goal can reach over all assignments. Whatever rates are best for the mean are best
// for the smallest accuracy as well, since apps share no worker.
func TestProteusGoals(t *testing.T) {
	carried, apart := 0, 0
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 23))
		w := randomPlanWorld(rng, 1+rng.IntN(3), 3+rng.IntN(3), 2+rng.IntN(2))
		for a := range w.spec.Apps {
			w.spec.Apps[a].Weight = float64(1 + rng.IntN(2))
		}
		demand := w.demands(rng, 0.2+1*rng.Float64())
		lambda := 0.2 + 0.6*rng.Float64()
		goals := []struct {
			goal  proteus.Goal
			value func(mean, smallest float64) float64
		}{
			{proteus.Accuracy, func(mean, _ float64) float64 { return mean }},
			{proteus.Fairness, func(mean, smallest float64) float64 { return smallest + 0.001*mean }},
			{proteus.Blend, func(mean, smallest float64) float64 { return lambda*smallest + (1-lambda)*mean }},
		}
		best := []float64{-1, -1, -1}
		multiple := 0.0
		w.assignments(func(hosts []int) {
			items, values := w.served(hosts, demand)
			able, smallest := math.Inf(1), 1.0
			for a := range demand {
				all, _ := w.served(hosts, w.everything(a))
				able = min(able, all[a]/demand[a])
				smallest = min(smallest, values[a]/demand[a])
			}
			multiple = max(multiple, able)
			if w.fully(items, demand) {
				for k, g := range goals {
					best[k] = max(best[k], g.value(w.mean(values, demand), smallest))
				}
			}
		})
		p := &proteus.Planner{Profile: w.profile, Solver: highstest.Solver(t), Options: exactly()}
		p.Options.Lambda = lambda
		r := plan.Request{Spec: w.spec, Rates: demand}

		p.Options.Goal = proteus.Throughput
		got := planned(t, fmt.Sprint("seed ", seed), p, r)
		able := math.Inf(1)
		for a := range demand {
			able = min(able, got.Capacity[a]/demand[a])
		}
		if able < multiple*0.999 || !got.Proven || got.Bound < multiple*(1-1e-6) ||
			!within(got.Bound/(1+got.Gap), able) {
			t.Fatalf("seed %d: carries %v times the demand, says %v with a gap of %v (proven %v); the best "+
				"assignment carries %v", seed, able, got.Bound, got.Gap, got.Proven, multiple)
		}
		if best[0] < 0 {
			continue
		}
		carried++
		var smallest []float64
		for k, g := range goals {
			p.Options.Goal = g.goal
			got := planned(t, fmt.Sprint("seed ", seed), p, r)
			values, least := accuracies(w.spec, got), 1.0
			for a, x := range values {
				least = min(least, x)
				values[a] *= demand[a]
			}
			smallest = append(smallest, least)
			if v := g.value(w.mean(values, demand), least); !within(v, best[k]) || !got.Proven ||
				!within(got.Bound/(1+got.Gap), v) {
				t.Fatalf("seed %d, goal %d: %v, bound %v, gap %v, proven %v; the best assignment has %v", seed, g.goal,
					v, got.Bound, got.Gap, got.Proven, best[k])
			}
		}
		if smallest[1] < smallest[0]-1e-6 {
			t.Fatalf("seed %d: fair plans have %v at least, accurate ones %v", seed, smallest[1], smallest[0])
		}
		if smallest[1] > smallest[0]+0.01 {
			apart++
		}
	}
	t.Logf("%d worlds carried, in %d fairness raises the smallest accuracy by a point or more", carried, apart)
	if carried < 40 || apart < 5 {
		t.Errorf("%d worlds carried their demand, in %d of them goals differ: too few", carried, apart)
	}
}

// Three equal workers, two apps that ask for 50/s each: a has a model of accuracy 0.8 that carries 20/s and one of 0.4
// with 100/s, b has both and one of 0.72 with 80/s, which is worth 0.72 / 0.8 = 0.9. A worker each leaves a at 0.5 and
// b at 0.9. The third, with the slow model, lifts a to (20 + 30 * 0.5) / 50 = 0.7 or b to (20 + 30 * 0.9) / 50 = 0.94:
// fairness gives it to a, and so does the mean, unless b weighs ten times as much: 0.2 < 10 * 0.04.
func TestProteusFairnessByHand(t *testing.T) {
	w := handMade(3, [][]handOffer{{{0.4, 10}, {0.8, 50}}, {{0.4, 10}, {0.72, 12.5}, {0.8, 50}}})
	for _, c := range []struct {
		goal   proteus.Goal
		weight float64
		want   []float64
	}{
		{proteus.Accuracy, 10, []float64{0.5, 0.94}}, {proteus.Accuracy, 1, []float64{0.7, 0.9}},
		{proteus.Fairness, 10, []float64{0.7, 0.9}},
	} {
		w.spec.Apps[1].Weight = c.weight
		p := &proteus.Planner{Profile: w.profile, Solver: highstest.Solver(t), Options: exactly()}
		p.Options.Goal = c.goal
		got := accuracies(w.spec, planned(t, "", p, plan.Request{Spec: w.spec, Rates: []float64{50, 50}}))
		if !within(got[0], c.want[0]) || !within(got[1], c.want[1]) {
			t.Errorf("goal %d, weight %v: accuracies %v, want %v", c.goal, c.weight, got, c.want)
		}
	}
}
