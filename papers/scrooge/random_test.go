package scrooge

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// shapes are graphs by what each module feeds. The last two are not series-parallel.
var shapes = [][][]int{
	{nil},
	{{1}, nil},
	{{1}, {2}, nil},
	{{1}, {2}, {3}, nil},
	{{1, 2}, nil, nil},
	{{1, 2}, {3}, nil, nil},
	{{1, 2}, {3}, {3}, nil},
	{{2}, {2}, nil},
	{{1, 2}, {2}, nil},
	{{1}, {2, 3}, {4}, {4}, nil},
	{{2, 3}, {3}, nil, nil},
	{{1, 2}, {3, 4}, {4}, {5}, {5}, nil},
}

// Small draws a problem that every allocation of can be tried: a graph with few modes, up to a handful of machines for
// each module, and an objective between what is hardly possible and what binds no more.
func Small(rng *rand.Rand) *Problem {
	p := &Problem{}
	for range 1 + rng.IntN(3) {
		p.Prices = append(p.Prices, 0.5+4*rng.Float64())
	}
	shape := shapes[rng.IntN(len(shapes))]
	total := time.Duration(0)
	for _, next := range shape {
		m := Module{Next: next}
		item := 2 + 20*rng.Float64() // ms of a single item
		for range 2 + rng.IntN(5) {
			t := rng.IntN(len(p.Prices))
			batch, slots := 1<<rng.IntN(4), 1+rng.IntN(3)
			ms := item * (0.5 + rng.Float64()) * (0.5 + 0.5*float64(batch)) * (0.4 + 0.6*float64(slots))
			m.Modes = append(m.Modes, Mode{Type: t, Batch: batch, Slots: slots, Latency: time.Duration(ms * 1e6)})
		}
		x := &m.Modes[rng.IntN(len(m.Modes))]
		m.Rate = x.Rate() * 4 * rng.Float64()
		switch rng.IntN(12) {
		case 0:
			m.Rate = 0
		case 1:
			m.Rate = 2 * x.Rate()
		}
		total += x.WorstLatency(x.Rate())
		p.Modules = append(p.Modules, m)
	}
	p.SLO = time.Duration(float64(total) * (0.25 + 0.75*rng.Float64()))
	return p
}

// Figure1 are seven graphs of the sizes and shapes of the applications of the paper's Figure 1.
var Figure1 = map[string][][]int{
	"traffic": {{1}, {2, 3}, {4}, nil, nil},      // decode, detect, crop and face detector, classify
	"face":    {{1}, {2}, nil},                   // detect, crop, key points
	"tracker": {{1}, {2}, {3}, nil},              // detect, crop, identify, match
	"pose":    {{1}, {2}, nil},                   // key points, order, action
	"caption": {{1}, {2}, nil},                   // features, order, caption
	"audio":   {{1}, {2}, nil},                   // speech, translation, synthesis
	"actdet":  {{1, 2}, {3}, {4}, {4}, {5}, nil}, // detect; crop, identify beside objects; join, activity
}

// Names are Figure1's, in order.
func Names() []string { return slices.Sorted(maps.Keys(Figure1)) }

// Many draws a problem of the size the paper reports times for: types machine types, each with a price between 0.5 and
// 8 $/h and a speed of 1 to 2.41 that has nothing to do with it (Table 1), and on each batches of 1 to 128 with 1 to 4
// at once for every module. A batch of b takes item*(f + (1-f)*b)/speed alone, where f, what batching can save, is 0.2
// to 0.7. Running e at once carries 1 + gain*(e-1)/e as much, up to a level of the module's beyond which a tenth is
// lost for each more (§3.2). Each time is off by up to 3 %, since it was measured.
func Many(rng *rand.Rand, shape [][]int, types int) *Problem {
	p := &Problem{SLO: time.Duration(300+700*rng.Float64()) * time.Millisecond}
	speed := make([]float64, types)
	for t := range types {
		p.Prices = append(p.Prices, 0.5*math.Pow(16, rng.Float64()))
		speed[t] = 1 + 1.41*rng.Float64()
	}
	rate := 10 + 190*rng.Float64()
	for _, next := range shape {
		m := Module{Next: next, Rate: rate * (0.3 + 3*rng.Float64())}
		item, fixed := 1+14*rng.Float64(), 0.2+0.5*rng.Float64()
		gain, peak := 0.4*rng.Float64(), 1+rng.IntN(4)
		for t := range types {
			suits := 0.8 + 0.4*rng.Float64() // how well the model suits the type
			for batch := 1; batch <= 128; batch *= 2 {
				for slots := 1; slots <= 4; slots++ {
					alone := item * (fixed + (1-fixed)*float64(batch)) / speed[t] / suits
					carries := 1 + gain*float64(min(slots, peak)-1)/float64(min(slots, peak))
					for range slots - peak {
						carries *= 0.9
					}
					ms := alone * float64(slots) / carries * (0.97 + 0.06*rng.Float64())
					m.Modes = append(m.Modes, Mode{Type: t, Batch: batch, Slots: slots,
						Latency: time.Duration(ms * 1e6)})
				}
			}
		}
		p.Modules = append(p.Modules, m)
	}
	return p
}
