package infless

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Planners believe the published latencies. Batches that do not run are longer than any objective.
func TestLatencies(t *testing.T) {
	w, err := newEnvironment(osvt, servers)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(w.Spec.DeviceTypes); n != 26 {
		t.Errorf("%d types of machines and parts, want one machine and 25 parts", n)
	}
	on := func(name string) serving.DeviceTypeID {
		for d, x := range w.Spec.DeviceTypes {
			if x.Name == name {
				return serving.DeviceTypeID(d)
			}
		}
		t.Fatal("no part " + name)
		return 0
	}
	for _, c := range []struct {
		variant serving.VariantID
		part    string
		batch   int
		want    time.Duration
	}{
		{0, "2 threads + 0 %", 1, 188 * ms}, {2, "2 threads + 30 %", 4, 87 * ms}, {
			2, "16 threads + 50 %", 16, 174630 * time.Microsecond,
		},
	} {
		if got := w.Beliefs.Latency(c.variant, on(c.part), c.batch, 1); got != c.want {
			t.Errorf("variant %d on %s, %d items: %v, want %v", c.variant, c.part, c.batch, got, c.want)
		}
	}
	for batch := 5; batch <= maxBatch; batch++ {
		if got := w.Beliefs.Latency(2, on("2 threads + 30 %"), batch, 1); got < tooLong {
			t.Errorf("%d items are believed to run in %v where 4 are the most", batch, got)
		}
	}
}

// No system plans for more than a linear program allows.
func TestStressWithinBounds(t *testing.T) {
	solver := highstest.Solver(t)
	for _, s := range scenarios {
		for _, system := range stressSystems {
			w, err := newEnvironment(s.functions, 2)
			if err != nil {
				t.Fatal(err)
			}
			w.Solver = milp.Solver(solver)
			p, err := newPlanningSystem(w, system)
			if err != nil {
				t.Fatal(err)
			}
			p.mix = s.shares
			most := p.maxPlanned(t.Context())
			if most == 0 {
				continue // twice the latency is beyond every objective
			}
			bound, err := p.bound(t.Context(), most)
			if err != nil {
				t.Fatal(err)
			}
			if most > bound*(1+1e-6) || most < bound/5 {
				t.Errorf("%s by %s: planned %v, allowed %v", s.name, system, most, bound)
			}
		}
	}
}

// While the load rises and falls, instances on shares of machines are launched, replaced and stopped, and few queries
// are late.
func TestThroughARisingAndFallingLoad(t *testing.T) {
	rate, err := workload.NewRate([]workload.Point{
		{At: 0, Rate: 60}, {At: 60, Rate: 300}, {At: 120, Rate: 40}, {At: 180, Rate: 40},
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"infless", "infless-balanced", "infless-dense"} {
		w, err := newEnvironment(osvt, servers)
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPlanningSystem(w, system)
		if err != nil {
			t.Fatal(err)
		}
		span := 180 * time.Second
		run, err := (&experiment.Case{Env: w, System: p.system, FirstRates: p.split(60), Span: span,
			PlanDelay: 100 * ms,
			Source: func(seed uint64) workload.Source {
				return workload.Limit(&mixedApps{App: workload.App{
					Times:    workload.NewProcess(rate, workload.Poisson{}, workload.Rand(seed, "arrivals")),
					Template: reproduce.Query(0),
				}, draw: workload.Rand(seed, "apps").Float64, shares: p.split(1)}, serving.Time(span), 1<<30)
			}, Record: report.Options{}}).Run(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		most, last := 0, len(run.Plans[len(run.Plans)-1].Plan.Instances)
		for _, p := range run.Plans {
			most = max(most, len(p.Plan.Instances))
			if err := p.Plan.Validate(w.Spec); err != nil {
				t.Fatal(err)
			}
		}
		late := run.Report.Overall.ViolationRatio
		t.Logf("%s: %d plans, up to %d instances, %d at the end; %.1f %% late; %v thread time, %v per cent", system,
			len(run.Plans), most, last, 100*late, run.Usage.Threads, run.Usage.Percent)
		if most < 2*last || late > 0.2 || run.Usage.Threads == 0 {
			t.Errorf("%s: up to %d instances, %d at the end, %.1f %% late, usage %+v", system, most, last, 100*late,
				run.Usage)
		}
	}
}
