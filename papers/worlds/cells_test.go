package worlds

import (
	"cmp"
	"flag"
	"math"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/internal/measure/worlds"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
)

var cells = flag.Bool("cells", false, "run TestOnePlanAgainstCells")

// part is a world's apps and machines that a cell has. Machines of each kind go to cells by their apps' load.
func part(of *worlds.World, apps []int, share, before float64) *worlds.World {
	w := *of
	spec := *of.Spec
	w.Spec, w.Demand, w.Items, w.Workload.Apps = &spec, nil, nil, nil
	w.Measurements.Latency, w.Measurements.Load = nil, nil
	spec.Apps, spec.Stages, spec.Variants, spec.Workers = nil, nil, nil, nil
	for _, a := range apps {
		app, stage := of.Spec.Apps[a], of.Spec.Stages[a]
		s := serving.StageID(len(spec.Stages))
		app.Stages, stage.App = []serving.StageID{s}, serving.AppID(s)
		from := stage.Variants[0]
		to := serving.VariantID(len(spec.Variants))
		stage.Variants = nil
		for k := range of.Spec.Stages[a].Variants {
			v := of.Spec.Variants[int(from)+k]
			v.Stage = s
			stage.Variants = append(stage.Variants, to+serving.VariantID(k))
			spec.Variants = append(spec.Variants, v)
		}
		inside := func(v serving.VariantID) bool { return v >= from && int(v) < int(from)+len(stage.Variants) }
		for _, p := range of.Measurements.Latency {
			if inside(p.Variant) {
				p.Variant += to - from
				w.Measurements.Latency = append(w.Measurements.Latency, p)
			}
		}
		for _, p := range of.Measurements.Load {
			if inside(p.Variant) {
				p.Variant += to - from
				w.Measurements.Load = append(w.Measurements.Load, p)
			}
		}
		spec.Apps, spec.Stages = append(spec.Apps, app), append(spec.Stages, stage)
		w.Demand, w.Items = append(w.Demand, of.Demand[a]), append(w.Items, of.Items[a])
		w.Workload.Apps = append(w.Workload.Apps, of.Workload.Apps[a])
	}
	seen, kinds := make([]int, len(spec.DeviceTypes)), make([]int, len(spec.DeviceTypes))
	for _, x := range of.Spec.Workers {
		kinds[x.DeviceType]++
	}
	for _, x := range of.Spec.Workers {
		d := x.DeviceType
		n := float64(kinds[d])
		if k := seen[d]; k >= int(math.Round(before*n)) && k < int(math.Round((before+share)*n)) {
			spec.Workers = append(spec.Workers, x)
		}
		seen[d]++
	}
	return &w
}

// One plan over a whole fleet against one for each of some cells, which share nothing: the apps are dealt out so that
// the cells' loads are even, and the machines of each kind by these loads. It prints what cells cost; see
// docs/kubernetes.md.
func TestOnePlanAgainstCells(t *testing.T) {
	if !*cells {
		t.Skip("give -cells: it takes minutes")
	}
	s, err := systems.Named(systems.Default)
	if err != nil {
		t.Fatal(err)
	}
	for _, counts := range [][]int{{2, 3, 5}, {16, 34, 50}, {166, 334, 500}} {
		for _, apart := range []bool{false, true} {
			whole := fleetWorld(counts...)
			if apart {
				movesApart(whole)
			}
			for _, n := range []int{1, 4, 16} {
				if n <= len(whole.Spec.Workers)/2 {
					utility, inTime, without := inCells(t, whole, n, s)
					t.Logf("%4d machines, apart %-5v, %2d cells: utility %.4f, in time %.2f %%, %d without a plan",
						len(whole.Spec.Workers), apart, n, utility, 100*inTime, without)
				}
			}
		}
	}
}

// movesApart has each app's demand begin at another place of its course.
func movesApart(w *worlds.World) {
	for a := range w.Workload.Apps {
		x := &w.Workload.Apps[a]
		rates := slices.Clone(x.Rates)
		for k := range rates {
			rates[k].Rate = x.Rates[(k+a)%len(rates)].Rate
		}
		x.Rates = rates
		w.Demand[a] = max(rates[0].Rate, 1)
	}
}

// inCells runs a system in each of so many cells of a world.
func inCells(t *testing.T, whole *worlds.World, n int, s systems.System) (utility, inTime float64, without int) {
	t.Helper()
	mean := make([]float64, len(whole.Demand)) // queries/s
	total := 0.0
	for a := range mean {
		rates := whole.Workload.Apps[a].Rates
		for k, x := range rates {
			until := whole.Workload.DurationS
			if k+1 < len(rates) {
				until = rates[k+1].AtS
			}
			mean[a] += x.Rate * (until - x.AtS) / whole.Workload.DurationS
		}
		total += mean[a]
	}
	order := make([]int, len(mean))
	for a := range order {
		order[a] = a
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(mean[b], mean[a]) })
	dealt, loads := make([][]int, n), make([]float64, n)
	for _, a := range order {
		least := slices.Index(loads, slices.Min(loads))
		dealt[least] = append(dealt[least], a)
		loads[least] += mean[a]
	}
	before := 0.0
	for c := range dealt {
		share := loads[c] / total
		w := part(whole, dealt[c], share, before)
		before += share
		if len(w.Spec.Workers) == 0 {
			without++
			continue
		}
		p, why, err := read(w)
		if err != nil {
			t.Fatal(err)
		}
		if why != "" {
			without++
			continue
		}
		r, err := p.run(t.Context(), s, highstest.Solver(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.refused != "" {
			t.Logf("a cell is refused: %s", r.refused)
			without++
			continue
		}
		utility, inTime = utility+share*r.utility, inTime+share*r.inTime
	}
	return utility, inTime, without
}
