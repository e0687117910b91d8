package bound

import (
	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/serving"
)

// improve adds second answers (serving.Confidence) to the queries of a class:
//
//	s_cvbw  queries of class c that variant v has answered first, of those in bin b of its confidence, and w then
//
//	maximise    + sum weight (accuracy_bw - accuracy_bv)/best s_cvbw
//	subject to  sum_w s_cvbw <= share_b y_cv    and the work of w as that of any
//
// Of a query of several items each may have one, for its part of the accuracy. Both answers may take all of the query's
// time, which is more than they have.
func (p *program) improve(x *class, paths []path, list []served,
	value func(a serving.AppID, accuracy float64) float64) []served {
	app := &p.w.Spec.Apps[x.app]
	stage := &p.w.Spec.Stages[app.Stages[0]]
	if len(app.Stages) > 1 || x.variant >= 0 {
		return list
	}
	firsts, single := list, *x
	single.size, single.items = 1, []float64{1}
	for n := range paths {
		c := stage.Confidence(paths[n].variants[0])
		if c == nil {
			continue
		}
		for b := range c.Bins {
			bin := &c.Bins[b]
			row := p.Row(-milp.Inf, 0)
			for _, f := range firsts {
				if f.path == n {
					p.term(row, f.column, -bin.Share)
				}
			}
			for m := range paths {
				v := paths[m].variants[0]
				if !bin.Improves(v) {
					continue
				}
				for _, split := range p.splits(&single, &paths[m]) {
					gains := bin.Of(v) - bin.Accuracy
					k := p.Column(milp.Column{
						Objective: value(x.app, bin.Of(v)) - value(x.app, bin.Accuracy), Upper: x.count,
					})
					p.term(row, k, 1)
					p.term(p.group(v, &single, split[0]), k, x.items[0])
					list = append(list, served{column: k, path: m, accuracy: gains, second: true})
				}
			}
		}
	}
	return list
}
