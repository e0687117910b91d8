package infaas

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// best tries every placement of apps of one stage and weight 1 and returns the highest mean normalised accuracy at
// which all of the demand can be carried, each app's queries going to its most accurate instances first (what Proteus's
// program maximises); negative when no placement carries it.
func best(spec *serving.Spec, p *Planner, need []float64) float64 {
	top, sum := make([]float64, len(spec.Apps)), 0.0
	for s, st := range spec.Stages {
		for _, v := range st.Variants {
			top[s] = max(top[s], spec.Variants[v].Accuracy)
		}
		sum += need[s]
	}
	type instance struct{ value, rate float64 }
	out := -1.0
	byApp := make([][]instance, len(spec.Apps))
	var try func(w int)
	try = func(w int) {
		if w == len(spec.Workers) {
			mean := 0.0
			for a, list := range byApp {
				list = slices.Clone(list)
				slices.SortFunc(list, func(x, y instance) int { return int(math.Copysign(1, y.value-x.value)) })
				left := need[a]
				for _, i := range list {
					part := min(left, i.rate)
					mean += part * i.value / sum
					left -= part
				}
				if left > 1e-6*need[a] {
					return
				}
			}
			out = max(out, mean)
			return
		}
		for v := range spec.Variants {
			s := spec.Variants[v].Stage
			if rate := carried(spec, p.Profile, nil, serving.VariantID(v), serving.WorkerID(w)); rate > 0 {
				byApp[s] = append(byApp[s], instance{spec.Variants[v].Accuracy / top[s], rate})
				try(w + 1)
				byApp[s] = byApp[s][:len(byApp[s])-1]
			}
		}
		try(w + 1)
	}
	try(0)
	return out
}

// value is the mean normalised accuracy of a plan at its shares.
func value(spec *serving.Spec, got *plan.Plan, need []float64) float64 {
	top, sum, out := make([]float64, len(spec.Apps)), 0.0, 0.0
	for s, st := range spec.Stages {
		for _, v := range st.Variants {
			top[s] = max(top[s], spec.Variants[v].Accuracy)
		}
		sum += need[s]
	}
	for _, i := range got.Instances {
		out += i.Share * need[i.Stage] / sum * spec.Variants[i.Variants[0].Variant].Accuracy / top[i.Stage]
	}
	return out
}

// A plan that sheds nothing is never more accurate than the best of all placements, and it sheds nothing only if one of
// them carries the demand. The loss of the greedy planner on these small clusters is bounded by measured values, with a
// margin for small changes of the rules: a much larger loss is a bug.
func TestAgainstAllPlacements(t *testing.T) {
	possible, missed, lost, worst := 0, 0, 0.0, 0.0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 5))
		spec, believed := random(rng, 1+rng.IntN(2), 2+rng.IntN(4)).build()
		p := &Planner{Profile: believed}
		headroom := p.Options.filled().Headroom
		r := plan.Request{Spec: spec, Rates: make([]float64, len(spec.Apps))}
		for round := range 3 {
			need := make([]float64, len(spec.Apps))
			for a := range r.Rates {
				r.Rates[a] = math.Exp(1 + 4*rng.Float64())
				need[a] = r.Rates[a] * headroom
			}
			got, err := p.Plan(t.Context(), r)
			if err != nil {
				break
			}
			r.Snapshot = running(got, 0)
			full := true
			for a := range need {
				full = full && got.Capacity[a] >= need[a]*(1-1e-6)
			}
			most := best(spec, p, need)
			if full {
				had := value(spec, got, need)
				if most < 0 || had > most+1e-9 {
					t.Fatalf("seed %d, round %d: accuracy %v, the best of all placements has %v", seed, round, had,
						most)
				}
				lost += most - had
				worst = max(worst, most-had)
			}
			if most >= 0 {
				possible++
				if !full {
					missed++
				}
			}
		}
	}
	t.Logf("%d demands could be carried, %d of them were not; the others lose %.4f of accuracy on average, "+
		"%.3f at most", possible, missed, lost/float64(possible-missed), worst)
	if possible < 400 || missed*100 > possible*3 || lost > 0.006*float64(possible-missed) {
		t.Errorf("%d of %d demands are not carried, or %.4f of accuracy is lost on average", missed, possible,
			lost/float64(possible-missed))
	}
}
