package rules

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// watch lets queries of drawn sizes arrive, 1,000/s, and answers every request a second later with a plan for the mix
// seen. It returns when plans were asked for.
func watch(t *testing.T, seed uint64, first *plan.Plan, seconds int, mean func(second int) float64) (
	asked []serving.Time) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	r := monitor.NewRates(1)
	v := scale.View{Spec: &serving.Spec{Apps: make([]serving.App, 1)}, Monitor: &r.View, Plan: first}
	rule := NewMixShift(0)
	var next *plan.Plan
	for now := serving.Time(1e6); now <= serving.Time(seconds)*1e9; now += 1e6 {
		v.Now = now
		r.Add(now, 0)
		r.AddSize(0, int32(min(max(math.Exp(mean(int(now/1e9))+rng.NormFloat64()), 1), 1000)))
		if next != nil && now == v.LastRequest.Add(time.Second) {
			v.Plan, v.Requested, next = next, false, nil
		}
		replan, again := rule.Decide(&v)
		if again <= now {
			t.Fatalf("seed %d: again at %v, which is not after %v", seed, again, now)
		}
		if replan {
			if v.Requested || v.LastRequest > 0 && now.Sub(v.LastRequest) < mixPause {
				t.Fatalf("seed %d: asked at %v, and before at %v", seed, now, v.LastRequest)
			}
			v.Requested, v.LastRequest, next = true, now, &plan.Plan{Mixes: []serving.Mix{r.Mix(0)}}
			asked = append(asked, now)
		}
	}
	return asked
}

// A plan for no sizes in particular is replaced once. Then a steady mix leads to no request, and a shift leads to one
// or two within seconds.
func TestMixShift(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		asked := watch(t, seed, &plan.Plan{}, 60, func(second int) float64 {
			if second >= 40 {
				return 5
			}
			return 4
		})
		if len(asked) < 2 || len(asked) > 4 || asked[0] != mixMinQueries*1e6 || asked[1] < 40e9 || asked[1] > 44e9 {
			t.Errorf("seed %d: asked at %v, want at 1s and soon after 40s", seed, asked)
		}
	}
}

// A configured mix is compared with the sizes seen as well.
func TestMixShiftFromGiven(t *testing.T) {
	given := &plan.Plan{Mixes: []serving.Mix{{Sizes: []int32{500}, Shares: []float64{1}}}}
	if asked := watch(t, 1, given, 3, func(int) float64 { return 4 }); len(asked) != 1 || asked[0] > 1e9 {
		t.Errorf("asked at %v", asked)
	}
}

// Other changes lead to a request at once, but for the pause.
func TestMixShiftAsksForOtherChanges(t *testing.T) {
	rule := NewMixShift(2 * time.Second)
	v := scale.View{
		Now: 1e9, Spec: &serving.Spec{Apps: make([]serving.App, 1)}, Monitor: &monitor.NewRates(1).View,
		Plan: &plan.Plan{},
	}
	if ask, _ := rule.Decide(&v); ask {
		t.Error("asked for nothing")
	}
	v.BasisChanged = 1e9
	if ask, _ := rule.Decide(&v); !ask {
		t.Error("a change is passed over")
	}
	v.LastRequest, v.Now, v.BasisChanged = 1e9, 2e9, 2e9
	if ask, again := rule.Decide(&v); ask || again != 3e9 {
		t.Errorf("within the pause: %v, again at %v", ask, again)
	}
	v.Now = 3e9
	if ask, _ := rule.Decide(&v); !ask {
		t.Error("after the pause the change is forgotten")
	}
}
