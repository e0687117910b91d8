package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/systems"
)

// drawShared draws apps whose objectives lie between 20 ms and 20 s, at 20 to 120 % of what full batches of their
// fastest variants load the machines with.
func drawShared(rng *rand.Rand) shared {
	between := func(a, b float64) float64 { return a * math.Exp(rng.Float64()*math.Log(b/a)) }
	w := shared{machines: 1 + rng.IntN(6), seconds: 40}
	load := between(0.2, 1.2) * float64(w.machines)
	n := 1 + rng.IntN(4)
	for range n {
		x := sharing{objective: time.Duration(between(0.02, 20) * 1e9), most: 1 << rng.IntN(7)}
		base := x.objective.Seconds() * between(0.01, 0.25)
		each := base * between(0.03, 1)
		x.rate = min(2*rng.Float64()*load/float64(n)/(base/float64(x.most)+each), 1500/float64(n))
		for range 1 + rng.IntN(4) {
			x.base, x.each = append(x.base, time.Duration(base*1e9)), append(x.each, time.Duration(each*1e9))
			slower := between(1.3, 3)
			base, each = base*slower, each*slower
		}
		w.apps = append(w.apps, x)
	}
	return w
}

// Where objectives and batches differ a thousandfold, the default's rule is ahead of others' on the same machines.
func TestRulesAcrossTimescales(t *testing.T) {
	others := []string{"symphony", "superserve", "nexus-batching", "proteus-batching", "greedy"}
	worlds := longtest.Of(30, 60)
	sum, behind := make(map[string]float64), 0
	for seed := range uint64(worlds) {
		w := drawShared(rand.New(rand.NewPCG(seed, 1)))
		own := w.run(t, systems.Default)
		sum[systems.Default] += own.utility
		best, by := 0.0, ""
		for _, name := range others {
			got := w.run(t, name)
			sum[name] += got.utility
			if got.utility > best {
				best, by = got.utility, name
			}
		}
		if own.utility < 0.985*best {
			behind++
			t.Logf("seed %d, %d machines, %d apps: %.3f, %s %.3f", seed, w.machines, len(w.apps), own.utility, by, best)
		}
	}
	for _, name := range others {
		t.Logf("%s: %.3f", name, sum[name]/float64(worlds))
		if sum[systems.Default] < sum[name]+0.05*float64(worlds) {
			t.Errorf("%s has %.3f on average, the default %.3f: it was ahead by 0.1", name, sum[name]/float64(worlds),
				sum[systems.Default]/float64(worlds))
		}
	}
	t.Logf("%s: %.3f; 1.5 %% or more behind the best other in %d of %d worlds", systems.Default,
		sum[systems.Default]/float64(worlds), behind, worlds)
	if behind > worlds/8 {
		t.Errorf("behind in %d worlds", behind)
	}
}
