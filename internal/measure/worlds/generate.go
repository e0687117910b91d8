package worlds

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Generate returns a world. The same seed and number give the same world on every machine. number must be at least 0;
// it decides which traits the world has at least, the seed all else. WithLengths and WithConfidences may be added to
// it.
func Generate(seed uint64, number int) *World {
	sure := number >= WithConfidences
	if sure {
		number -= WithConfidences
	}
	long := number >= WithLengths
	if long {
		number -= WithLengths
	}
	name := fmt.Sprintf("%d-%02d", seed, number)
	if long {
		name += "-lengths"
	}
	if sure {
		name += "-confidence"
	}
	w := &World{Seed: seed, Number: number, Name: name, Spec: &serving.Spec{}}
	// A world whose draw cannot be made feasible by slack alone is drawn again. That happens rarely.
	for attempt := range mostAttempts {
		rng := workload.Rand(seed, fmt.Sprintf("world %d, attempt %d", number, attempt))
		g := &generator{w: w, long: long, sure: sure, rng: rng}
		if g.run() {
			return w
		}
		*w = World{Seed: seed, Number: number, Name: w.Name, Spec: &serving.Spec{}}
	}
	panic(fmt.Sprintf("worlds: no feasible world of seed %d and number %d in %d attempts", seed, number, mostAttempts))
}

const mostAttempts = 100

// generator draws one world.
type generator struct {
	w      *World
	rng    *rand.Rand
	long   bool // with lengths
	sure   bool // with confidences
	kinds  []kind
	models []model   // by VariantID
	items  []float64 // mean items of a query at each stage, by StageID
	share  []float64 // of the offered queries, by AppID
	span   float64   // s for which queries arrive
}

// run draws everything, and tells whether the world is feasible.
func (g *generator) run() bool {
	g.w.Traits = draw(g.rng, g.w.Number)
	if g.sure {
		g.w.Traits = slices.DeleteFunc(g.w.Traits, func(t Trait) bool {
			return t == OneVariant // there no query has a second answer
		})
	}
	g.machines()
	g.apps()
	g.memory()
	if !g.measure() || !g.feasible() {
		return false
	}
	g.load()
	g.targets()
	if g.long {
		g.lengths()
	}
	if g.sure {
		g.confidences()
	}
	return g.w.Spec.Validate() == nil && g.w.Workload.Validate() == nil
}

// between draws a number from low to high, evenly.
func (g *generator) between(low, high float64) float64 { return low + (high-low)*g.rng.Float64() }

// whole draws a whole number from low to high.
func (g *generator) whole(low, high int) int { return low + g.rng.IntN(high-low+1) }

// rounded rounds to whole microseconds, which profile files keep exactly.
func rounded(seconds float64) time.Duration {
	return max(time.Duration(seconds*1e6+0.5), 1) * time.Microsecond
}

// to rounds x to so many steps a unit, so that a file gives it back exactly.
func to(x, steps float64) float64 { return float64(int64(x*steps+0.5)) / steps }
