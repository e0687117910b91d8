package proteus

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/solver/highs"
)

func TestTry(t *testing.T) {
	s, err := highs.New(highs.Options{CacheDir: highs.DefaultCacheDir()})
	if err != nil {
		t.Fatal(err)
	}
	w, err := world(s, setup{})
	if err != nil {
		t.Fatal(err)
	}
	ts, err := traces(w.Spec, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range ts {
		t.Log(tr.name, tr.total(), tr.seconds(), sum(tr.mean()), sum(tr.peak(10)))
		if os.Getenv("TR") != "" && !strings.Contains(tr.name, os.Getenv("TR")) {
			continue
		}
		for _, name := range []string{"proteus", "sommelier"} {
			if name == "proteus-batching" {
				continue
			}
			t0 := time.Now()
			j := newJob(w, system(strings.Replace(name, "foresight", "proteus", 1)), tr)
			if g := os.Getenv("GAP"); g != "" && (name == "foresight" || name == "proteus" || name == "sommelier") {
				j.System.Options.Planning.Gap, _ = strconv.ParseFloat(g, 64)
				j.System.Options.Planning.Slack, _ = strconv.ParseFloat(os.Getenv("SLACK"), 64)
				j.System.Options.Replan, _ = time.ParseDuration(os.Getenv("REPLAN"))
			}
			if os.Getenv("PLAIN") != "" && name != "infaas-accuracy" {
				com, _ := strconv.ParseFloat(os.Getenv("PLAIN"), 64)
				j.Scaler = scale.Replan{Interval: 10 * time.Second, Bursts: true, Plain: true, Com: com}
			}
			if name == "foresight" {
				j.PlanDelay = 0
				j.Scaler = experiment.Foresight{Window: 10 * time.Second, Rates: tr.windows(10)}
			}
			r, err := j.run(context.Background(), 1)
			if err != nil {
				t.Error(err)
				continue
			}
			t.Logf("  %-20s acc %.4f drop %.4f viol %.4f thr %.1f plans %d  %v", name, r.accuracy, r.drop, r.violations, r.throughput, len(r.Plans), time.Since(t0))
			if os.Getenv("VERB") != "" {
				line := ""
				for i := range r.windows {
					line += fmt.Sprintf("%.1f(%.1f) ", 100*r.windows[i].mean(), 100-100*float64(r.windows[i].served)/float64(r.windows[i].offered))
				}
				t.Log(line)
				line = ""
				for _, p := range r.Plans {
					line += fmt.Sprintf("%.0f:%.0f/%.0f ", p.At.Seconds(), sum(p.Plan.Demand), p.Plan.Forecast.Throughput)
				}
				t.Log(line)
			}
		}
	}
}
