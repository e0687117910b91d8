package static

import (
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// headroom is how much more than the demand the variants must carry that instances run by default, as Proteus plans for
// 1.05 times the demand.
const headroom = 1.05

// accuracyForDemand returns, by StageID, the accuracy of the variants that instances run which choose none by
// themselves: the highest with which the workers carry the demand of all stages, which share their time. A demand that
// nobody has configured asks nothing, so that the most accurate variants run. Where even the fastest variants do not
// carry it, they run.
func (f *filling) accuracyForDemand() map[serving.StageID]float64 {
	levels := make([][]level, len(f.spec.Stages))
	at := make([]int, len(f.spec.Stages))
	for s := range levels {
		levels[s] = f.levels(serving.StageID(s))
	}
	busy := func() (sum float64) {
		for s := range levels {
			if len(levels[s]) > 0 {
				sum += f.asked[s].Rate * headroom / levels[s][at[s]].carries
			}
		}
		return sum
	}
	for busy() > 1 {
		down, best := -1, 0.0
		for s := range levels {
			if at[s]+1 >= len(levels[s]) {
				continue
			}
			now, next := &levels[s][at[s]], &levels[s][at[s]+1]
			saves := f.asked[s].Rate * (1/now.carries - 1/next.carries)
			costs := f.asked[s].Rate * (now.accuracy - next.accuracy) / max(f.asked[s].BestAccuracy, least)
			if gain := saves / max(costs, least); down < 0 || gain > best {
				down, best = s, gain
			}
		}
		if down < 0 {
			break
		}
		at[down]++
	}
	out := make(map[serving.StageID]float64, len(levels))
	for s := range levels {
		if len(levels[s]) > 0 {
			out[serving.StageID(s)] = levels[s][at[s]].accuracy
		}
	}
	return out
}

// least keeps ratios finite.
const least = 1e-12

// level is what the workers carry of a stage with variants of at most an accuracy.
type level struct{ accuracy, carries float64 }

// levels returns the accuracies of what is loaded of a stage, falling, without those that carry no more than a higher
// one.
func (f *filling) levels(s serving.StageID) (out []level) {
	var all []float64
	for n := range f.places {
		p := &f.places[n]
		for k := range p.among {
			if p.stage == s && p.loads[k] && !p.among[k].belowFloor {
				all = append(all, p.among[k].accuracy)
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, most := range slices.Backward(all) {
		x := level{accuracy: most}
		for n := range f.places {
			if f.places[n].stage == s {
				x.carries += f.places[n].with(most)
			}
		}
		if n := len(out); n == 0 || x.carries > out[n-1].carries {
			out = append(out, x)
		}
	}
	return out
}

// with returns the rate of the variant that a place runs where at most an accuracy is wanted, in items/s.
func (p *place) with(most float64) float64 {
	chosen := -1
	for k := range p.among {
		if p.loads[k] && !p.among[k].belowFloor &&
			(chosen < 0 || closerTo(most, p.among[k].accuracy, p.among[chosen].accuracy)) {
			chosen = k
		}
	}
	if chosen < 0 {
		return 0
	}
	return p.among[chosen].rate
}
