package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// sized are Poisson arrivals of queries of different sizes: the mixture of Kairos's authors, in steps of ten.
type sized struct {
	poisson
	sizes *rand.Rand
}

func (s *sized) Next() (workload.Arrival, bool) {
	a, ok := s.poisson.Next()
	u, n := s.sizes.IntN(99), 0
	switch {
	case u < 8:
		n = 1 + s.sizes.IntN(99)
	case u < 30:
		n = 200 + s.sizes.IntN(400)
	case u < 35:
		n = 600 + s.sizes.IntN(400)
	default:
		n = int(math.Exp(5.1 + 0.2*s.sizes.NormFloat64()))
	}
	a.Items = int32(min((n+9)/10*10, 1000))
	return a, ok
}

// heterogeneous serves n queries of different sizes at a rate on instances of three types, like Kairos's RM2 with its
// objective of 350 ms. Only the first type serves the largest in time. It returns the share that was not in time.
func heterogeneous(tb testing.TB, system string, o systems.Options, counts []int, rate float64, n int) float64 {
	c := simtest.Typed(counts, [][2]time.Duration{
		{3 * time.Millisecond, 258 * time.Microsecond}, {time.Millisecond, 387 * time.Microsecond},
		{2 * time.Millisecond, 402 * time.Microsecond},
	}, 350*time.Millisecond, 1000)
	c.Spec.Apps[0].Late = serving.ServeLate
	s, err := systems.Get(system)
	if err != nil {
		tb.Fatal(err)
	}
	s.Planner, s.Scaler, s.Options = "static", "fixed", o // the pool is given, and how fast it is
	e, err := s.Engine(c.Spec, c.Profile, c.Planner.Provides())
	if err != nil {
		tb.Fatal(err)
	}
	tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Exact, workload.Rand(1, "service"))
	if err != nil {
		tb.Fatal(err)
	}
	late := 0
	_, err = Run(Config{
		Spec: c.Spec, Engine: e, Truth: tr, Initial: c.Plan, Warm: true,
		Source: &sized{
			poisson{
				rng: workload.Rand(1, "arrivals"), gap: float64(time.Second) / rate, left: n,
			}, workload.Rand(1, "sizes"),
		},
		Observe: func(now serving.Time, _ []engine.Input, out []engine.Decision) {
			for i := range out {
				if d := &out[i]; d.Kind == engine.EndQuery && (d.Outcome != serving.Served || now > d.Deadline) {
					late++
				}
			}
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return float64(late) / float64(n)
}

// On the first pool of Kairos's authors, two base instances and nine cheap ones, near the capacity of matching, it
// misses less than half as many queries as each of the other rules.
func TestMatchingCarriesMore(t *testing.T) {
	lost := make(map[string]float64)
	for _, s := range []string{"kairos", "fcfs", "clkwrk", "drs"} {
		var o systems.Options
		if s == "drs" {
			o.Routing.Threshold = 500
		}
		lost[s] = heterogeneous(t, s, o, []int{2, 0, 9}, 100, 6000)
	}
	for s, x := range lost {
		if s != "kairos" && lost["kairos"] > x/2 {
			t.Errorf("matching loses %.4f, %s %.4f of the queries", lost["kairos"], s, x)
		}
	}
}

// Sixteen cells of 25 instances miss hardly more queries than one of 400.
func TestMatchingInCells(t *testing.T) {
	var o systems.Options
	whole := heterogeneous(t, "kairos", o, []int{72, 0, 328}, 4100, 8000)
	o.Routing.Cells = 16
	cells := heterogeneous(t, "kairos", o, []int{72, 0, 328}, 4100, 8000)
	if whole > 0.001 || cells > whole+0.002 {
		t.Errorf("%.4f of the queries are lost as a whole, %.4f in 16 cells", whole, cells)
	}
}

// The time that cells save and the queries that they miss, near the capacity of 400 instances. ns/op is the whole time
// per query on one core.
func BenchmarkMatchingCells(b *testing.B) {
	for _, cells := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("instances=400/cells=%d", cells), func(b *testing.B) {
			var o systems.Options
			o.Routing.Cells = cells
			b.ReportMetric(100*heterogeneous(b, "kairos", o, []int{72, 0, 328}, 4200, b.N), "%late")
		})
	}
}
