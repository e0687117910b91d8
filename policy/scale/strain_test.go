package scale

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// An app that misses far more than its objective allows, under a plan that is to serve all, is planned for as if more
// came: step by step, up to a bound, and less again as time passes. Where all machines are owned, or where the plan
// sheds, it is not.
func TestStrain(t *testing.T) {
	for _, c := range []struct {
		name   string
		tenure serving.Tenure
		shed   float64
		missed int // of ten queries
		rises  bool
	}{
		{"rented, half of them missed", serving.Rented, 0, 5, true},
		{"rented, none missed", serving.Rented, 0, 0, false},
		{"the plan sheds", serving.Rented, 1, 5, false},
		{"owned", serving.Owned, 0, 5, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := &serving.Spec{
				DeviceTypes: []serving.DeviceType{{Tenure: c.tenure}},
				Apps:        []serving.App{{SLO: serving.SLO{Latency: time.Second, Percentile: 99}}},
			}
			rates := monitor.NewRates(1)
			v := &View{Spec: spec, Monitor: &rates.View, Plan: &plan.Plan{Shed: []float64{c.shed}}}
			var x strain
			run := func(seconds, missed int) {
				for range seconds * 10 {
					for k := range 10 {
						v.Now = v.Now.Add(10 * time.Millisecond)
						rates.Add(v.Now, 0)
						if k < missed {
							rates.Miss(v.Now, 0)
						}
					}
					x.look(v, 0)
				}
			}
			run(4, c.missed)
			if x.factor != 1 {
				t.Fatalf("%v after four seconds: plans may not be in force yet", x.factor)
			}
			run(3, c.missed)
			if rises := x.factor > 1; rises != c.rises {
				t.Fatalf("factor %v", x.factor)
			}
			if !c.rises {
				return
			}
			if most := 1 + mostStrain; x.factor > most {
				t.Errorf("%v after one rise, at most %v", x.factor, most)
			}
			run(60, c.missed)
			if x.factor < 0.95*strainLimit || x.factor > strainLimit {
				t.Errorf("%v after a minute, the limit is %v", x.factor, strainLimit)
			}
			run(int(2*strainHalves.Seconds()), 0)
			if x.factor > 1+(strainLimit-1)/3 {
				t.Errorf("%v long after", x.factor)
			}
		})
	}
}
