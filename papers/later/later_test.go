package later

import (
	"math"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/internal/runtime/highs"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

// rows runs figures with short loads.
func rows(t *testing.T, names ...string) *reproduce.Outcome {
	t.Helper()
	solver, err := highs.New(highs.Options{CacheDir: highs.DefaultCacheDir()})
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(reproduce.Request{Figures: names, Parallel: 2, Solver: solver})
	r.quick = true
	out, err := study.Run(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range out.Rows {
		if x.Quantity == "" || math.IsInf(x.Measured, 0) || math.IsNaN(x.Measured) && x.Unit != "%" {
			t.Errorf("figure %s, %s, %v: %s is %v", x.Figure, x.System, x.Setting, x.Quantity, x.Measured)
		}
	}
	if len(out.Charts) != len(names) {
		t.Errorf("%d charts of %d figures", len(out.Charts), len(names))
	}
	return out
}

// value returns the number of a row; NaN where there is none.
func value(o *reproduce.Outcome, figure, system, quantity string, at map[string]string) float64 {
	n := slices.IndexFunc(o.Rows, func(x reproduce.Row) bool {
		if x.Figure != figure || x.System != system || x.Quantity != quantity {
			return false
		}
		for k, v := range at {
			if x.Setting[k] != v {
				return false
			}
		}
		return true
	})
	if n < 0 {
		return math.NaN()
	}
	return o.Rows[n].Measured
}

// With accuracy scaling the cluster carries more, the most with the least accurate variants; and off peak it takes
// fewer machines than a planner that always uses all of them.
func TestLokiClaims(t *testing.T) {
	o := rows(t, "L1", "L2")
	gain := func(accuracy string) float64 {
		return value(o, "L1", "loki", "in parts of hardware scaling only", reproduce.Setting("accuracy", accuracy))
	}
	if a, b := gain("any"), gain("at least 90 %"); !(a > 2.5) || !(b > 1.3) || !(b < a) {
		t.Errorf("loki carries %v of what hardware scaling does, and %v with 90 %% of the accuracy", a, b)
	}
	if x := value(o, "L2", "loki-hardware", "violations in parts of loki's", nil); !(x > 2) {
		t.Errorf("hardware scaling has %v of loki's violations", x)
	}
	if x := value(o, "L2", "proteus", "machines off peak in parts of loki's", nil); !(x > 1.5) {
		t.Errorf("proteus has %v of loki's machines off peak", x)
	}
}

// Deferred dispatch carries more than eager dispatch, the more so with several models, and its machines in use follow
// the load.
func TestSymphonyClaims(t *testing.T) {
	o := rows(t, "S1", "S2")
	one := value(o, "S1", "eager", "deferred in parts of it", reproduce.Setting("models", 1))
	many := value(o, "S1", "eager", "deferred in parts of it", reproduce.Setting("models", 16))
	if !(one > 1.1) || !(many > one) {
		t.Errorf("deferred carries %v of eager with one model and %v with 16", one, many)
	}
	before := 0.0
	for _, load := range []float64{1000, 2000, 4000, 8000} {
		at := reproduce.Setting("load", load)
		used, all := value(o, "S2", "symphony", "machines in use of 16", at), value(o, "S2", "eager",
			"machines in use of 16", at)
		if !(used > before) || !(used < all) {
			t.Errorf("%v queries/s: %v machines in use, %v with eager dispatch, %v at half the load", load, used, all,
				before)
		}
		before = used
	}
}

// SlackFit is more accurate than any fixed variant that attains as much, the more so the larger the bursts.
func TestSuperServeClaims(t *testing.T) {
	o := rows(t, "F1")
	before := 0.0
	for _, burst := range []string{"1 times", "2 times", "4 times"} {
		at := reproduce.Setting("burst", burst)
		points := value(o, "F1", "superserve", "more accurate than a variant that attains as much", at)
		if !(points > before) {
			t.Errorf("bursts of %s: %v points above fixed variants, %v with smaller ones", burst, points, before)
		}
		before = points
		if a := value(o, "F1", "superserve", "attainment", at); !(a > 99) {
			t.Errorf("bursts of %s: %v %% attained", burst, a)
		}
	}
}

// The modelled worlds are what the page says: a batch of b takes a base and a time for each item.
func TestModelledLatencies(t *testing.T) {
	env, err := vision(2, 3).environment(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := env.Beliefs.Latency(1, 0, 7, 1); got != 12*ms || len(env.Spec.Workers) != 3 || len(env.Spec.Apps) != 2 {
		t.Errorf("a batch of 7 takes %v", got)
	}
	env, err = traffic().environment(nil)
	if err != nil {
		t.Fatal(err)
	}
	if best := env.Spec.BestAccuracy(0); best != 1 || env.Spec.Stages[0].Next[0].FanOut != 3 ||
		env.Spec.DeviceTypes[0].Tenure != serving.Rented {
		t.Errorf("best accuracy %v", best)
	}
}

// Beyond what the machines carry, early drop at every stage loses most of the goodput to queries that are dropped late:
// the machine time that they have had is wasted. Proactive dropping keeps what is carried.
func TestPARDClaims(t *testing.T) {
	o := rows(t, "P1")
	for _, arrivals := range []string{"Poisson", "clumps"} {
		at := func(load string) func(system, quantity string) float64 {
			return func(system, quantity string) float64 {
				return value(o, "P1", system, quantity, map[string]string{"arrivals": arrivals, "load": load})
			}
		}
		high := at("1300")
		if x, y := high("pard", "goodput"), high("nexus", "goodput"); !(x > 1.5*y) {
			t.Errorf("%s: pard has %v queries/s in time, nexus %v", arrivals, x, y)
		}
		if x, y := high("pard", "wasted machine time"), high("nexus", "wasted machine time"); !(x < y/5) {
			t.Errorf("%s: pard wastes %v %% of the machine time, nexus %v", arrivals, x, y)
		}
		if x := at("600")("pard", "violations"); !(x < 3) {
			t.Errorf("%s: pard has %v %% violations at a load that is carried", arrivals, x)
		}
	}
}
