package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// Late queries of an app that serves them do not wait until no others come: after a burst they fill the batches of the
// others, and under lasting overload they have a small part of the machines' time.
func TestLateQueriesAreServedBesideOthers(t *testing.T) {
	const calm, most = 230, 700 // queries/s; both machines carry 490
	for _, c := range []struct {
		name    string
		until   float64 // s that the burst lasts; all is over after 20
		longest time.Duration
		inTime  float64 // of what came, at least
	}{
		{"burst", 4, 3 * time.Second, 0.93},
		{"overload", 20, 0, 0.6}, // 0.7 of what comes is carried
	} {
		t.Run(c.name, func(t *testing.T) {
			x := simtest.Uniform(2, 20*time.Millisecond, 2800*time.Microsecond, 250*time.Millisecond, 16)
			x.Spec.Apps[0].Late, x.Spec.Apps[0].QueueLimit = serving.ServeLate, 1000
			here := static.Instance{Variants: []serving.VariantID{0}}
			there := here
			there.Worker = 1
			e, p := fixed(t, "sluice", x.Spec, x.Profile, []static.Instance{here, there})
			tr, err := truth.NewTable(x.Spec, x.Measurements, truth.Exact, nil)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			var arrivals []workload.Arrival
			for at := 0.0; at < 20; {
				rate := float64(calm)
				if at >= 2 && at < c.until {
					rate = most
				}
				at += rng.ExpFloat64() / rate
				arrivals = append(arrivals, workload.Arrival{
					At: serving.Time(at * 1e9), Items: 1, Variant: serving.None, Sample: -1,
				})
			}
			var longest time.Duration
			inTime, late := 0, 0
			_, err = Run(Config{
				Spec: x.Spec, Engine: e, Truth: tr, Initial: p, Warm: true, Source: workload.FromSlice(arrivals),
				Observe: func(now serving.Time, _ []engine.Input, decisions []engine.Decision) {
					for i := range decisions {
						d := &decisions[i]
						if d.Kind != engine.EndQuery || d.Outcome != serving.Served {
							continue
						}
						longest = max(longest, now.Sub(d.Arrived))
						if now <= d.Deadline {
							inTime++
						} else if now < serving.Time(20*time.Second) {
							late++ // while others come
						}
					}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			part := float64(inTime) / float64(len(arrivals))
			t.Logf("%d queries: %.1f %% in time, %d late while others came, %v at most", len(arrivals), 100*part, late,
				longest)
			if part < c.inTime || late == 0 || c.longest > 0 && longest > c.longest {
				t.Errorf("want %.0f %% in time, some late, %v at most", 100*c.inTime, c.longest)
			}
		})
	}
}
