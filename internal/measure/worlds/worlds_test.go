package worlds

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/internal/algo/interp"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

const checked = 300

// The same seed and number give the same world, another seed another one.
func TestWorldsFollowFromSeedAndNumber(t *testing.T) {
	for n := range 40 {
		a, b, c := Generate(3, n), Generate(3, n), Generate(4, n)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("world %s is another one the second time", a.Name)
		}
		if a.ConfigFile() == c.ConfigFile() {
			t.Errorf("worlds %s and %s are the same", a.Name, c.Name)
		}
	}
}

// Every pair of traits that do not exclude each other meets in some world of a few hundred.
func TestTraitsCross(t *testing.T) {
	met := make(map[[2]Trait]bool)
	for n := range checked {
		w := Generate(1, n)
		for _, a := range w.Traits {
			for _, b := range w.Traits {
				met[[2]Trait{a, b}] = true
			}
		}
		for _, x := range exclude {
			if w.Has(x[0]) && w.Has(x[1]) {
				t.Errorf("world %s has %s and %s", w.Name, x[0], x[1])
			}
		}
	}
	crossed := slices.Concat(vocabulary, later)
	for _, a := range crossed {
		for _, b := range crossed {
			pair := [2]Trait{a.Trait, b.Trait}
			if !met[pair] && !slices.Contains(exclude, pair) && !slices.Contains(exclude, [2]Trait{pair[1], pair[0]}) {
				t.Errorf("no world has %s and %s", pair[0], pair[1])
			}
		}
	}
}

// A world is what its traits say.
func TestWorldsHaveTheirTraits(t *testing.T) {
	for n := range checked {
		w := Generate(2, n)
		apps, kinds := len(w.Spec.Apps), len(w.Spec.DeviceTypes)
		largest, graphs, rent, weights, one := 0, false, false, false, true
		for a := range w.Spec.Apps {
			for _, x := range w.Spec.Apps[a].Mix.Sizes {
				largest = max(largest, int(x))
			}
			graphs = graphs || len(w.Spec.Apps[a].Stages) > 1
			weights = weights || w.Spec.Apps[a].Weight != 1
		}
		held := int64(0)
		for _, v := range w.Spec.Variants {
			held += v.MemoryBytes
		}
		for _, d := range w.Spec.DeviceTypes {
			rent = rent || d.PricePerHour > 0
			if !w.Has(LittleMemory) && d.MemoryBytes < held {
				t.Errorf("world %s: %s does not hold everything", w.Name, d.Name)
			}
		}
		for _, s := range w.Spec.Stages {
			one = one && len(s.Variants) == 1
		}
		targets := false
		for a := range w.Spec.Apps {
			app := &w.Spec.Apps[a]
			targets = targets || app.AccuracyTarget > 0
			if app.AccuracyTarget >= w.Spec.BestAccuracy(serving.AppID(a)) ||
				len(app.Stages) == 1 && app.AccuracyTarget > 0 && app.AccuracyTarget <= app.Floor {
				t.Errorf("world %s: the target of %s is %v", w.Name, app.Name, app.AccuracyTarget)
			}
		}
		for _, c := range []struct {
			trait Trait
			is    bool
		}{
			{MixedMachines, kinds > 1}, {Sizes, largest > 1}, {Graphs, graphs}, {Rent, rent}, {OneVariant, one},
			{Targets, targets},
			{Overload, w.Offered() > 1.1*w.Reach},
			{Large, len(w.Spec.Workers) >= leastLarge},
			{Ramp, len(w.Workload.Apps[0].Rates) == rampSteps && !w.Has(RealTrace)},
		} {
			if w.Has(c.trait) != c.is {
				t.Errorf("world %s: %s is %v, want %v", w.Name, c.trait, c.is, w.Has(c.trait))
			}
		}
		if w.Has(Crowded) && apps <= len(w.Spec.Workers) || w.Has(ManyApps) && apps < 6 || !w.Has(Weights) && weights {
			t.Errorf("world %s (%s): %d apps on %d workers", w.Name, w.TraitList(), apps, len(w.Spec.Workers))
		}
	}
}

// Every app has a variant of each stage that meets its floor, fits into a machine, and is in time there
// with room to wait.
func TestWorldsAreFeasible(t *testing.T) {
	for n := range checked {
		w := Generate(5, n)
		if err := w.Spec.Validate(); err != nil {
			t.Fatalf("world %s: %v", w.Name, err)
		}
		for a := range w.Spec.Apps {
			app := &w.Spec.Apps[a]
			path := 0.0
			for at, s := range app.Stages {
				items := 1
				if at == 0 {
					items = largest(app)
				}
				fastest := math.Inf(1)
				for _, v := range w.Spec.Stages[s].Variants {
					for d := range w.Spec.DeviceTypes {
						if x := &w.Spec.Variants[v]; x.Accuracy >= app.Floor && x.MaxBatch >= items &&
							x.MemoryBytes <= w.Spec.DeviceTypes[d].MemoryBytes {
							fastest = min(fastest, mean(w, v, serving.DeviceTypeID(d), items))
						}
					}
				}
				path += fastest
			}
			if 2.5*path > app.SLO.Latency.Seconds() {
				t.Errorf("world %s: app %s takes %.4f s at least, its objective is %v", w.Name, app.Name, path,
					app.SLO.Latency)
			}
		}
	}
}

// mean is how long a batch takes, in seconds.
func mean(w *World, v serving.VariantID, d serving.DeviceTypeID, items int) float64 {
	var xs, ys []float64
	for _, p := range w.Measurements.Latency {
		if p.Variant == v && p.DeviceType == d {
			xs, ys = append(xs, float64(p.Items)), append(ys, p.Mean.Seconds())
		}
	}
	out, _ := interp.Linear(xs, ys, float64(items))
	return out
}

// The load is about as large as the demand says, within the bounds of a world that can be simulated at once.
func TestLoads(t *testing.T) {
	for n := range checked {
		w := Generate(6, n)
		src, err := w.Workload.Source(w.App)
		if err != nil {
			t.Fatalf("world %s: %v", w.Name, err)
		}
		all := workload.Collect(src, 1<<20)
		offered := make([]int, len(w.Spec.Apps))
		for _, a := range all {
			offered[a.App]++
		}
		most, span := 3*mostQueries, w.Workload.DurationS
		if w.Has(Large) {
			most = 2 * mostLargeQueries
		}
		if len(all) > most || len(all) < 50 {
			t.Errorf("world %s (%s) has %d queries", w.Name, w.TraitList(), len(all))
		}
		for a, d := range w.Demand {
			if want := d * span; !w.Has(Clumps) && want > 400 && (float64(offered[a]) < 0.6*want ||
				float64(offered[a]) > 1.5*want) {
				t.Errorf("world %s (%s): app %d has %d queries, want about %.0f", w.Name, w.TraitList(), a, offered[a],
					want)
			}
		}
	}
}

// What a trace file says is what the world has.
func TestArrivalsFile(t *testing.T) {
	if got := ArrivalsFile([]serving.Time{0, 1_234_000, 30e9}); got != "0.000\n1.234\n30000.000\n" {
		t.Errorf("%q", got)
	}
}

// A world with lengths has the machines, apps and arrivals of the one without; objectives are at least as long.
func TestWorldsWithLengths(t *testing.T) {
	for n := range 60 {
		plain, long := Generate(5, n), Generate(5, WithLengths+n)
		if !long.Has(Lengths) || plain.Has(Lengths) || !reflect.DeepEqual(plain.Demand, long.Demand) ||
			!reflect.DeepEqual(plain.Measurements.Latency, long.Measurements.Latency) {
			t.Fatalf("world %s is not world %s with lengths", long.Name, plain.Name)
		}
		if len(long.Measurements.Length) == 0 {
			t.Errorf("world %s has no lengths measured", long.Name)
		}
		for a := range long.Spec.Apps {
			if long.Spec.Apps[a].SLO.Latency < plain.Spec.Apps[a].SLO.Latency {
				t.Errorf("world %s: an objective is %v, without lengths %v", long.Name, long.Spec.Apps[a].SLO.Latency,
					plain.Spec.Apps[a].SLO.Latency)
			}
			if long.Workload.Apps[a].Lengths.IsZero() {
				t.Errorf("world %s: app %d has no lengths", long.Name, a)
			}
		}
	}
}
