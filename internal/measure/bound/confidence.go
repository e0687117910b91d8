package bound

import (
	"slices"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/serving"
)

// improve adds second answers (serving.Confidence) to the queries of a class, at each stage:
//
//	s_cvbw  queries of class c that variant v has answered first, of those in bin b of its confidence, and w then
//
//	maximise    + sum weight (accuracy_bw - accuracy_bv) others/best s_cvbw
//	subject to  sum_w s_cvbw <= share_b y_cv    and the work of w as that of any
//
// Of several items of a query each may have one, for its part of the accuracy. Both answers may take all of the query's
// time, which is more than they have. others is the highest accuracy that the other stages can have.
func (p *program) improve(x *class, paths []path, list []served,
	value func(a serving.AppID, accuracy float64) float64) []served {
	if x.variant >= 0 {
		return list
	}
	firsts, single := list, *x
	single.size = 1
	stages := p.w.Spec.Apps[x.app].Stages
	for at, s := range stages {
		if x.items[at] == 0 || len(p.w.Spec.Stages[s].Confidences) == 0 {
			continue
		}
		others := 1.0
		for k, other := range stages {
			if k != at && x.items[k] > 0 {
				others *= p.w.reach(other)
			}
		}
		var variants []serving.VariantID
		for n := range paths {
			if v := paths[n].variants[at]; !slices.Contains(variants, v) {
				variants = append(variants, v)
			}
		}
		for _, v := range variants {
			c := p.w.Spec.Stages[s].Confidence(v)
			if c == nil {
				continue
			}
			for b := range c.Bins {
				bin := &c.Bins[b]
				row := p.Row(-milp.Inf, 0)
				for _, f := range firsts {
					if paths[f.path].variants[at] == v {
						p.term(row, f.column, -bin.Share)
					}
				}
				for _, w := range variants {
					rates := -1
					if bin.Improves(w) {
						rates = p.ratesOf(w, &single, at, x.within)
					}
					if rates < 0 {
						continue
					}
					gains := (bin.Of(w) - bin.Accuracy) * others
					k := p.Column(milp.Column{Objective: value(x.app, gains) - value(x.app, 0), Upper: x.count})
					p.term(row, k, 1)
					p.term(p.group(w, &single, rates), k, x.items[at])
					list = append(list, served{column: k, accuracy: gains, second: true})
				}
			}
		}
	}
	return list
}

// reach is the highest accuracy that a stage can have.
func (w *Model) reach(s serving.StageID) float64 {
	best := w.Spec.BestOfStage(s)
	for k := range w.Spec.Stages[s].Confidences {
		mean := 0.0
		for _, b := range w.Spec.Stages[s].Confidences[k].Bins {
			mean += b.Share * (b.Accuracy + b.MostGain())
		}
		best = max(best, mean)
	}
	return best
}
