package nexus

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Nexus §4.2, Figure 4: X feeds Y within 100 ms; which of three splits is best depends on how many outputs X has.
func TestSplitExample(t *testing.T) {
	steps := func(at ...float64) func(time.Duration) float64 {
		return func(within time.Duration) float64 {
			for k := 2; k >= 0; k-- {
				if within >= time.Duration(40+10*k)*ms {
					return at[k]
				}
			}
			return 0
		}
	}
	for _, c := range []struct{ factor, x, y, machines float64 }{
		{0.1, 60, 40, 1000 / 272.7}, {1, 50, 50, 1000 / 153.8}, {10, 40, 60, 1000 / 40.0},
	} {
		stages := []Stage{
			{Rate: 1000, Throughput: steps(200, 250, 300)}, {
				Rate: 1000 * c.factor, After: []int{0}, Throughput: steps(300, 400, 500),
			},
		}
		got := Split(stages, 100*ms)
		if got == nil || got[0] != time.Duration(c.x)*ms || got[1] != time.Duration(c.y)*ms {
			t.Errorf("factor %v: split %v, want %v and %v ms", c.factor, got, c.x, c.y)
			continue
		}
		machines := stages[0].Rate/stages[0].Throughput(got[0]) + stages[1].Rate/stages[1].Throughput(got[1])
		if math.Abs(machines/c.machines-1) > 1e-3 {
			t.Errorf("factor %v: %v machines, want %v", c.factor, machines, c.machines)
		}
	}
}

// Forks, joins and chains against every split in steps.
func TestSplitAgainstAll(t *testing.T) {
	graphs := [][][]int{{{}}, {{}, {0}}, {{}, {0}, {0}}, {{}, {0}, {1}}, {{}, {0}, {0}, {1, 2}}}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 2))
		after := graphs[rng.IntN(len(graphs))]
		stages := make([]Stage, len(after))
		const coarse = budgetSteps / 10 // steps of the search
		for k := range stages {
			per := 1 + rng.IntN(3)
			stages[k] = Stage{Rate: 1 + 100*rng.Float64(), After: after[k],
				Throughput: func(within time.Duration) float64 {
					n := int(within/(coarse*ms)) - per // rises at the coarse steps only
					return 30 * float64(max(n+1, 0))
				}}
			if rng.IntN(5) == 0 {
				stages[k].Fixed = coarse * ms * time.Duration(rng.IntN(3))
			}
		}
		cost := func(parts []time.Duration) float64 {
			sum := 0.0
			ends := make([]time.Duration, len(stages))
			for k := range stages {
				for _, a := range after[k] {
					ends[k] = max(ends[k], ends[a])
				}
				if ends[k] += parts[k]; ends[k] > budgetSteps*ms {
					return math.Inf(1)
				}
				switch s := &stages[k]; {
				case s.Fixed > 0 && parts[k] < s.Fixed:
					return math.Inf(1)
				case s.Fixed == 0:
					sum += s.Rate / s.Throughput(parts[k])
				}
			}
			return sum
		}
		least := math.Inf(1)
		parts := make([]time.Duration, len(stages))
		var try func(k int)
		try = func(k int) {
			if k == len(parts) {
				least = min(least, cost(parts))
				return
			}
			for n := range 11 {
				parts[k] = time.Duration(n*coarse) * ms
				try(k + 1)
			}
		}
		try(0)
		got := Split(stages, budgetSteps*ms)
		if got == nil {
			if !math.IsInf(least, 1) {
				t.Errorf("seed %d: no split, there is one of %v machines", seed, least)
			}
			continue
		}
		if c := cost(got); math.Abs(c-least) > 1e-9*least {
			t.Errorf("seed %d: %v takes %v machines, the least is %v", seed, got, c, least)
		}
	}
}
