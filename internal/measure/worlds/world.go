// Package worlds generates worlds to measure systems in: machines, apps with their variants and latencies, and a load.
// A world is plain data and follows from its seed and number alone. It is drawn from a vocabulary of traits that users'
// worlds have and papers mostly have one at a time, so that worlds cross them.
//
// Every world is feasible: each app has a variant that meets its floor, fits into the memory of some machine and is in
// time there with room to wait. How much is offered is set against two rates that a linear program gives: the most that
// the machines carry at all, and the most that they carry with the most accurate variants alone.
package worlds

import (
	"fmt"
	"strings"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// World is machines, apps and a load.
type World struct {
	Seed   uint64
	Number int
	Name   string // such as 1-07: seed and number
	Traits []Trait
	Spec   *serving.Spec
	// Measurements are the latencies of all variants on all device types, and their load times.
	Measurements serving.Measurements
	Workload     workload.Spec
	Demand       []float64            // mean rate of the load by AppID, in queries/s: what the first plan is for
	Items        []workload.ItemsSpec // sizes of queries by AppID
	// Reach is the rate of all apps together, in queries/s in the proportions of the load, that the machines carry with
	// whichever variants meet the floors; Best is that of the most accurate variants alone. Both are for even arrivals
	// and machines that hold everything.
	Reach, Best float64
}

// Has tells whether a world has a trait.
func (w *World) Has(t Trait) bool {
	for _, x := range w.Traits {
		if x == t {
			return true
		}
	}
	return false
}

// Offered is the mean rate of the load of all apps, in queries/s.
func (w *World) Offered() (sum float64) {
	for _, r := range w.Demand {
		sum += r
	}
	return sum
}

// String describes the world in a line.
func (w *World) String() string {
	counts := make([]int, len(w.Spec.DeviceTypes))
	for _, x := range w.Spec.Workers {
		counts[x.DeviceType]++
	}
	var machines []string
	for d, n := range counts {
		machines = append(machines, fmt.Sprintf("%d %s", n, w.Spec.DeviceTypes[d].Name))
	}
	return fmt.Sprintf("machines: %s; apps: %d, stages: %d, variants: %d; offered %.0f/s of %.0f/s, %.0f/s with the "+
		"best variants", strings.Join(machines, ", "), len(w.Spec.Apps), len(w.Spec.Stages), len(w.Spec.Variants),
		w.Offered(), w.Reach, w.Best)
}

// TraitList is the traits, separated by commas.
func (w *World) TraitList() string {
	out := make([]string, len(w.Traits))
	for i, t := range w.Traits {
		out[i] = string(t)
	}
	return strings.Join(out, ", ")
}

// App returns the app of a name.
func (w *World) App(name string) (serving.AppID, error) {
	for a := range w.Spec.Apps {
		if w.Spec.Apps[a].Name == name {
			return serving.AppID(a), nil
		}
	}
	return serving.None, fmt.Errorf("app %q is not in world %s", name, w.Name)
}
