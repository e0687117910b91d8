package infless

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/plot"
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
func figure17(run *runner) error {
	names := []string{
		"infless", "batch", "openfaas+", "batch+rs", "infless-release", "infless-balanced", "infless-dense",
	}
	var tasks [][]*reproduce.Task
	for _, system := range names {
		var byCount []*reproduce.Task
		for _, n := range counts {
			key := fmt.Sprintf("fragments of %d instances by %s", n, system)
			byCount = append(byCount, run.AddTask(key, 1+n/1000, 1, func(ctx context.Context, _ uint64) (any, error) {
				p, err := largeCluster(system)
				if err != nil {
					return nil, err
				}
				out, rates := p.planInstances(ctx, n, loadShares(largeFunctions))
				f := fragments{served: reproduce.Sum(rates), instances: len(out.Instances)}
				_, f.left, f.servers = p.resources(out)
				return f, nil
			}))
		}
		tasks = append(tasks, byCount)
	}
	run.Report(func(o *reproduce.Outcome) error {
		var lines []plot.Line
		for _, system := range names {
			lines = append(lines, plot.Line{Name: system})
		}
		for c, n := range counts {
			for k, system := range names {
				f := tasks[k][c].Results[0].(fragments)
				setting := reproduce.Setting("instances", n)
				r := row("17", system, "left over of active servers", "%", setting)
				if p := published17[system]; p != nil {
					r = r.WithPublished(100*p[c], "Figure 17b, plotting data; the text says as low as 15 %")
				}
				o.AddRow(r, 100*f.left)
				o.AddRow(row("17", system, "served for an active server", "queries/s", setting), f.served/f.servers)
				o.AddRow(row("17", system, "instances", "", setting), float64(f.instances))
				lines[k].X, lines[k].Y = append(lines[k].X, float64(n)), append(lines[k].Y, 100*f.left)
			}
		}
		o.Notes = append(o.Notes,
			"Figure 17: left over counts threads and per cent of accelerators by the paper's weights. Instances can "+
				"be given more than serves their functions, which leaves less over and serves no more; hence what is "+
				"served for an active server.")
		addChart(o, "17", "17b: what is left over of active servers", 1, plot.Panel{
			Name: "left over (%)", XName: "instances", Lines: lines, Low: 0, High: 100,
		})
		return nil
	})
	return nil
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
func figure17a(run *runner) error {
	names := []string{"infless", "infless-balanced", "infless-dense"}
	var tasks [][]*reproduce.Task
	for _, system := range names {
		var byCount []*reproduce.Task
		for _, n := range counts {
			key := fmt.Sprintf("time of %d instances by %s", n, system)
			byCount = append(byCount, run.AddTask(key, 1+n/1000, 1, func(ctx context.Context, _ uint64) (any, error) {
				return timePlan(ctx, system, n)
			}))
		}
		tasks = append(tasks, byCount)
	}
	run.Report(func(o *reproduce.Outcome) error {
		for c, n := range counts {
			for k, system := range names {
				x := tasks[k][c].Results[0].(planTime)
				setting := reproduce.Setting("instances", n)
				each, all := row("17a", system, "for an instance", "us", setting),
					row("17a", system, "for all", "ms", setting)
				if system == "infless" {
					each = each.WithPublished(1000*published17a[0][c],
						"Figure 17a, plotting data; the text says 0.5 ms")
					all = all.WithPublished(published17a[1][c],
						"Figure 17a, plotting data; the text says below a second")
				}
				o.AddRow(each, x.each)
				o.AddRow(all, x.all)
			}
		}
		o.Notes = append(o.Notes,
			"Figure 17a: the best of five plans from nothing, reading the request and writing the plan included.")
		return nil
	})
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
