package test

import (
	"math"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/papers/proteus"
	"github.com/sluice-serving/sluice/policy/plan"
)

// With option Bursts a plan has more capacity for apps whose queries come in clumps, at less accuracy, as far as the
// fleet carries it: it never sheds what a plan without it carries. Poisson arrivals change nothing, and neither does
// dispersion where nobody asks for it.
func TestProteusHeadroomFollowsDispersion(t *testing.T) {
	t.Parallel()
	spec, m := measured(t, 1)
	planner := func(bursts bool) *proteus.Planner {
		return &proteus.Planner{Profile: believed(t, spec, m), Solver: highstest.Solver(t),
			Options: proteus.Options{Bursts: bursts}}
	}
	made := func(p *proteus.Planner, rates []float64, dispersion float64) *plan.Plan {
		t.Helper()
		r := plan.Request{Spec: spec, Rates: rates}
		if dispersion > 0 {
			for range rates {
				r.Dispersions = append(r.Dispersions, dispersion)
			}
		}
		out, err := p.Plan(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	same := func(a, b *plan.Plan) bool {
		return slices.EqualFunc(a.Instances, b.Instances, func(x, y plan.Instance) bool {
			return x.Worker == y.Worker && x.Variants[0] == y.Variants[0] && x.Share == y.Share
		})
	}
	least := func(p *plan.Plan, rates []float64) float64 { // capacity over demand
		out := math.Inf(1)
		for a, rate := range rates {
			out = min(out, p.Capacity[a]/rate)
		}
		return out
	}
	const clumps = 200 // at hundreds of queries/s smaller ones even out
	mix := zipf(len(spec.Apps), 0)
	for _, load := range []float64{400, 1000, 3000} { // the last is more than is carried
		rates := scaled(mix, load)
		plain := made(planner(false), rates, clumps)
		if !same(plain, made(planner(false), rates, 0)) || !same(plain, made(planner(true), rates, 1)) {
			t.Errorf("%v/s: dispersion changes a plan that does not follow it", load)
		}
		clumped := made(planner(true), rates, clumps)
		if plain.Shed != nil {
			if !same(plain, clumped) {
				t.Errorf("%v/s: a plan that sheds has head-room for clumps", load)
			}
			continue
		}
		if clumped.Shed != nil || clumped.Forecast.Accuracy > plain.Forecast.Accuracy ||
			least(clumped, rates) < 1.3*least(plain, rates) {
			t.Errorf("%v/s: a plan for clumps carries %.2f times the demand at accuracy %.4f and sheds %v, one for "+
				"none %.2f at %.4f", load, least(clumped, rates), clumped.Forecast.Accuracy, clumped.Shed,
				least(plain, rates), plain.Forecast.Accuracy)
		}
	}
}
