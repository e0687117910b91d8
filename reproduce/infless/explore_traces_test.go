package infless

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/report"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/systems"
)

func TestExploreTraces(t *testing.T) {
	names := strings.Fields(os.Getenv("SYS"))
	if len(names) == 0 {
		t.Skip()
	}
	for _, sc := range scenarios {
		if a := os.Getenv("APP"); a != "" && a != sc.name {
			continue
		}
		for _, tr := range traceNames {
			if a := os.Getenv("TR"); a != "" && a != tr {
				continue
			}
			load, err := relative(tr, stepsRun)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				exploreLinear = os.Getenv("LIN") != ""
				if v := os.Getenv("LOADX"); v != "" {
					fmt.Sscan(v, &exploreLoad)
				}
				w, err := newWorld(sc.functions, servers)
				if err != nil {
					t.Fatal(err)
				}
				if os.Getenv("NOLOAD") != "" {
				}
				peak := 200.0
				if sc.name != "OSVT" {
					peak = 600
				}
				peaks := make([]float64, len(sc.functions))
				first := make([]float64, len(peaks))
				for k := range peaks {
					peaks[k] = peak
					first[k] = peak * load[0]
				}
				src, err := follow(load, peaks, step)
				if err != nil {
					t.Fatal(err)
				}
				s, err := systems.Get(name)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Sscan(os.Getenv("LAT"), &s.Options.Packing.Latency)
				if v := os.Getenv("LINGER"); v != "" { s.Options.Keeping.Linger, _ = time.ParseDuration(v) }
				fmt.Sscan(os.Getenv("HEAD"), &s.Options.Packing.Headroom)
				reasons := map[string]int{}
				why := map[string]int{}
				byStep := make([][2]int, stepsRun+10)
				c := &experiment.Case{World: w, System: s, Source: src, Span: runLength, First: first, PlanDelay: 20 * time.Millisecond,
					Observe: func(o *report.Outcome) {
						k := int(o.Arrived / serving.Time(step))
						byStep[k][0]++
						if experiment.Violated(o) {
							byStep[k][1]++
							reasons[fmt.Sprint(sc.functions[o.App].model, " ", o.Outcome)]++
						}
					},
					Watch: func(now serving.Time, in []engine.Input, out []engine.Decision) {
						for k := range out {
							switch out[k].Kind {
							case engine.LaunchInstance, engine.StopInstance, engine.RequestPlan:
								why[fmt.Sprint(out[k].Kind)]++
							case engine.EndQuery:
								if out[k].Outcome != serving.Served {
									why["end "+out[k].Reason.String()]++
								}
							}
						}
					},
				}
				begin := time.Now()
				r, err := c.Run(t.Context(), 1)
				if err != nil {
					fmt.Println(sc.name, tr, name, err)
					continue
				}
				o := &r.Report.Overall
				res := 64*r.Usage.Threads.Seconds() + 142*r.Usage.Percent.Seconds()
				fmt.Printf("%s %s %s: viol %.2f%% offered %d per resource %.5f (mean res %.0f) exec %.1f queue %.1f batch %.2f plans %d wall %v\n   %v %v\n", sc.name, tr, name, 100*o.ViolationRatio, o.Offered, float64(o.InTime)/res, res/runLength.Seconds(), o.Latency.Mean-o.Queue.Mean, o.Queue.Mean, *o.MeanBatch, len(r.Plans), time.Since(begin).Round(time.Millisecond), reasons, why)
				if os.Getenv("STEPS") != "" {
					for k := range load {
						fmt.Printf("%d:%.0f/%.0f%% ", k, 100*load[k], 100*float64(byStep[k][1])/float64(max(byStep[k][0], 1)))
					}
					fmt.Println()
				}
			}
		}
	}
}
