package proteus

import (
	"context"
	"iter"

	"github.com/sluice-serving/sluice/policy/plan"
)

// Point is a plan for a multiple of a demand.
type Point struct {
	Multiple float64
	Plan     *plan.Plan
}

// Frontier makes plans for so many equally spaced multiples of a demand, from the largest that can be carried down (up
// to one part in a thousand, head-room included). They show the best accuracy of the fleet at every throughput. A plan
// for more is a plan for less, so each search starts from the previous plan, and the objective never rises with the
// multiple. Running instances get no reward, and no accuracy is given up for head-room. The sequence is empty when
// nothing serves some stage. When ctx ends, the last pair holds the error.
func Frontier(ctx context.Context, p *Planner, r plan.Request, points int) iter.Seq2[Point, error] {
	return func(yield func(Point, error) bool) {
		q := *p
		q.Options.Tolerance, q.Options.Slack = -1, -1
		m, err := q.newProblem(r)
		if err != nil {
			yield(Point{}, err)
			return
		}
		most, _, counts, err := q.largestMultiple(ctx, m, everyStage(scaled))
		if err != nil {
			yield(Point{}, err)
			return
		}
		for k := points; k > 0 && most > 0; k-- {
			multiple := most * float64(k) / float64(points)
			step := r
			step.Rates = make([]float64, len(r.Rates))
			for a, rate := range r.Rates {
				step.Rates[a] = rate * multiple
			}
			m, err := q.newProblem(step)
			if err == nil {
				m.hint = counts
				var f *found
				if f, err = q.find(ctx, m); err == nil {
					counts = f.counts
					if !yield(Point{multiple, m.plan(f, step)}, nil) {
						return
					}
				}
			}
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(Point{}, err)
				return
			}
		}
	}
}
