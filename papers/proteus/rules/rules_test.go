package rules

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/ruletest"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/serving"
)

const ms = serving.Time(time.Millisecond)

type situation = ruletest.Situation

// What a rule decides and may decide, by short names.
var run, until, drop, same, decide = ruletest.Run, ruletest.Until, ruletest.Drop, ruletest.Same, ruletest.Decide

func TestRules(t *testing.T) {
	five := []int{100, 100, 100, 100, 100}
	for _, c := range []struct {
		name string
		rule batch.Rule
		s    situation
		want batch.Decision
	}{
		// Proteus §5. T_process(q) = 10 + 5q; one query expires at 100: T_max_wait(2) = 100 - 20 = 80.
		{
			"adaptive waits for the second query until T_max_wait(2)", Adaptive{}, situation{
				Base: 10, PerItem: 5, Limit: 8, Due: []int{100},
			}, until(80),
		},
		{
			"case 1: nobody came until T_max_wait(2), so the one runs", Adaptive{}, situation{
				Base: 10, PerItem: 5, Limit: 8, Now: 80, Due: []int{100},
			}, run(1),
		},
		// Two queries: T_max_wait(3) = 100 - 25 = 75.
		{
			"case 2: the second came before T_max_wait(3), so it waits for a third", Adaptive{}, situation{
				Base: 10, PerItem: 5, Limit: 8, Now: 70, Due: []int{100, 120},
			}, until(75),
		},
		{
			"case 2: the second came after T_max_wait(3), so both run", Adaptive{}, situation{
				Base: 10, PerItem: 5, Limit: 8, Now: 78, Due: []int{100, 120},
			}, run(2),
		},
		{"a full batch does not wait", Adaptive{}, situation{Base: 10, PerItem: 5, Limit: 4, Due: five}, run(4)},
		{
			"after a long batch: the first can be saved and the rest follow in time", Adaptive{}, situation{
				Base: 10, PerItem: 5, Limit: 4, Now: 80, Due: []int{96, 200, 200, 200},
			}, run(1),
		},
		{
			"after a long batch: saving the first would make the others late", Adaptive{}, situation{
				Base: 10, PerItem: 5, Limit: 4, Now: 80, Due: []int{96, 111, 111, 111},
			}, drop(),
		},
		{
			"a first query that nothing can save is given up", Adaptive{}, situation{
				Base: 10, PerItem: 5, Limit: 4, Now: 90, Due: []int{96, 200},
			}, drop(),
		},
		{
			"a first query that is behind its stage's part of the objective runs while later stages may make up for it",
			Adaptive{}, situation{Base: 10, PerItem: 5, Limit: 4, Now: 90, Due: []int{96}, Last: 105}, run(1),
		},
		{
			"and is given up when they cannot", Adaptive{}, situation{
				Base: 10, PerItem: 5, Limit: 4, Now: 91, Due: []int{96}, Last: 105,
			}, drop(),
		},
		{
			"with serve-late it runs with the largest batch", Adaptive{}, situation{
				Base: 10, PerItem: 5, Limit: 4, Now: 90, Due: []int{96, 200}, Keep: true,
			}, run(2),
		},
		{"aimd starts with one", AIMD{}, situation{Base: 10, Limit: 8, Due: five}, run(1)},
	} {
		if got := decide(c.rule, c.s); !same(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Clipper §4.3.1: one more after each batch in time, a tenth less after a late one.
func TestAIMDMoves(t *testing.T) {
	b := AIMD{}.New()
	sizes := func() int {
		return b.Decide(situation{Base: 1, Limit: 32, Due: make([]int, 32)}.View()).N
	}
	for want := 1; want <= 10; want++ {
		if got := sizes(); got != want {
			t.Fatalf("batch %d has %d queries", want, got)
		}
		b.Finished(want, false)
	}
	b.Finished(11, true) // 11 -> 9.9
	if got := sizes(); got != 9 {
		t.Errorf("after a late batch of 11: %d, want 9", got)
	}
}

// On random situations the rule neither starts a batch that it believes to end after the first deadline, nor waits
// beyond T_max_wait(q+1).
func TestAdaptiveAgainstBruteForce(t *testing.T) {
	for seed := uint64(1); seed <= 3000; seed++ {
		s := ruletest.RandomSituation(rand.New(rand.NewPCG(seed, 2)))
		v := s.View()
		_, items := v.Fit(s.Limit)
		d := Adaptive{}.New().Decide(v)
		first := serving.Time(s.Due[0]) * ms
		switch d.Action {
		case batch.Run:
			ran := 0
			for k := range d.N {
				ran += s.Items[k]
			}
			if v.Now+serving.Time(v.Latency(ran)) > first {
				t.Fatalf("seed %d: adaptive starts %d items at %v, believed to end after the first deadline %v", seed,
					ran, v.Now, first)
			}
		case batch.Wait:
			if d.Until > first-serving.Time(v.Latency(items+1)) || d.Until <= v.Now {
				t.Fatalf("seed %d: adaptive waits until %v", seed, d.Until)
			}
		}
	}
}
