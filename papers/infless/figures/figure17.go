package infless

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// The cluster of the large simulation (§5.3).
const largeServers, largeFunctions = 2000, 40

var counts = []int{100, 500, 1000, 2000, 5000, 10000}

// Published shares of active servers that are unused (Figure 17b, plotting data), by index in counts.
var published17 = map[string][]float64{
	"infless":   {.167, .193, .191, .194, .190, .187},
	"batch":     {.340, .320, .280, .280, .250, .250},
	"openfaas+": {.202, .240, .237, .242, .239, .239},
	"batch+rs":  {.210, .255, .230, .250, .231, .230},
}

// fragments describes what a plan leaves unused on the servers that it uses.
type fragments struct {
	left, served, servers float64
	instances             int
}

// figure17 shows the unused share of active servers by number of instances.
func figure17(run *runner, f *reproduce.Sheet) error {
	panel := f.Chart("17", title("17b: what is left over of active servers"), 1).
		Panel("left over (%)", "instances", 0, 100)
	for c, n := range counts {
		at := f.At("instances", n)
		for _, system := range []string{
			"infless", "batch", "openfaas+", "batch+rs", "infless-release", "infless-balanced", "infless-dense",
		} {
			r := reproduce.Add(run.Runner, fmt.Sprintf("fragments of %d instances by %s", n, system), 1+n/1000, 1,
				func(ctx context.Context, _ uint64) (fragments, error) { return findFragments(ctx, system, n) })
			left := r.Each(func(f fragments) float64 { return 100 * f.left })
			at.Row(system, "left over of active servers", "%", left).
				Published(100*reproduce.InList(published17, system, c),
					"Figure 17b, plotting data; the text says as low as 15 %")
			at.Row(system, "served for an active server", "queries/s",
				r.Each(func(f fragments) float64 { return f.served / f.servers }))
			at.Row(system, "instances", "", r.Each(func(f fragments) float64 { return float64(f.instances) }))
			panel.Point(system, float64(n), left)
		}
	}
	f.Note("Figure 17: left over counts threads and per cent of accelerators by the paper's weights. Instances can " +
		"be given more than serves their functions, which leaves less over and serves no more; hence what is " +
		"served for an active server.")
	return nil
}

func findFragments(ctx context.Context, system string, n int) (fragments, error) {
	p, err := largeCluster(system)
	if err != nil {
		return fragments{}, err
	}
	out, rates := p.planInstances(ctx, n, loadShares(largeFunctions))
	f := fragments{served: reproduce.Sum(rates), instances: len(out.Instances)}
	_, f.left, f.servers = p.resources(out)
	return f, nil
}

func largeCluster(system string) (*planningSystem, error) {
	w, err := newEnvironment(variedFunctions(largeFunctions, 0), largeServers)
	if err != nil {
		return nil, err
	}
	return newPlanningSystem(w, system)
}

// Published times to schedule one instance and all of them, in ms (Figure 17a, plotting data).
var published17a = [2][]float64{{.0957, .0965, .0980, .0989, .1009, .1098}, {10.98, 54.88, 109.8, 203.5, 500.7, 956.7}}

// figure17a measures how long planning from nothing takes on this machine.
func figure17a(run *runner, f *reproduce.Sheet) error {
	for c, n := range counts {
		for _, system := range []string{"infless", "infless-balanced", "infless-dense"} {
			r := reproduce.Add(run.Runner, fmt.Sprintf("time of %d instances by %s", n, system), 1+n/1000, 1,
				func(ctx context.Context, _ uint64) (planTime, error) { return timePlan(ctx, system, n) })
			at := f.At("instances", n)
			each := at.Row(system, "for an instance", "us", r.Each(func(x planTime) float64 { return x.each }))
			all := at.Row(system, "for all", "ms", r.Each(func(x planTime) float64 { return x.all }))
			if system == "infless" {
				each.Published(1000*published17a[0][c], "Figure 17a, plotting data; the text says 0.5 ms")
				all.Published(published17a[1][c], "Figure 17a, plotting data; the text says below a second")
			}
		}
	}
	f.Note("Figure 17a: the best of five plans from nothing, reading the request and writing the plan included.")
	return nil
}

// planTime is how long planning takes: in us for an instance, in ms for all.
type planTime struct{ each, all float64 }

// timePlan returns the best of five times to plan about n instances from nothing.
func timePlan(ctx context.Context, system string, n int) (planTime, error) {
	p, err := largeCluster(system)
	if err != nil {
		return planTime{}, err
	}
	_, rates := p.planInstances(ctx, n, loadShares(largeFunctions))
	best := planTime{each: -1}
	for range 5 {
		began := time.Now()
		out, _ := p.plan(ctx, rates)
		took := float64(time.Since(began).Microseconds()) / 1000
		if best.each < 0 || took < best.all {
			best = planTime{1000 * took / float64(len(out.Instances)), took}
		}
	}
	return best, nil
}
