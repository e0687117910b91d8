package infless

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/papers/infless/rules"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

// spans is a keep-alive rule that keeps an app warm in given spans and remembers the idle times that it is told.
type spans struct {
	warm []rules.Span
	told []time.Duration
}

func (*spans) Name() string                            { return "spans" }
func (s *spans) Idled(_ serving.Time, d time.Duration) { s.told = append(s.told, d) }
func (s *spans) Warm(serving.Time) []rules.Span        { return s.warm }

func (*spans) Remember(b []byte, _ serving.Time) []byte         { return b }
func (*spans) Recall([]byte, serving.Time, time.Duration) error { return nil }

// Replay gives what stepping through the time second by second gives.
func TestReplayAgainstSeconds(t *testing.T) {
	for seed := uint64(1); seed <= 200; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := &spans{}
		for at := rng.IntN(30); at < 200; at += 1 + rng.IntN(60) {
			to := at + 1 + rng.IntN(40)
			s.warm = append(s.warm, rules.Span{
				From: time.Duration(at) * time.Second, To: time.Duration(to) * time.Second,
			})
			at = to
		}
		var calls []serving.Time
		for at := rng.IntN(50); at < 2000; at += 1 + rng.IntN(150) {
			calls = append(calls, serving.Time(at)*1e9)
		}
		lasts, first := rng.IntN(40), rng.IntN(300)
		got := replay(s, calls, time.Duration(lasts)*time.Second, serving.Time(first)*1e9, 2000e9)
		warm := func(idle int) bool {
			for _, w := range s.warm {
				if idle >= int(w.From.Seconds()) && idle < int(w.To.Seconds()) {
					return true
				}
			}
			return false
		}
		cold, counted, idle, next, busy, told := 0, 0, 0, 0, -1, 0
		for now := range 2000 {
			if next < len(calls) && calls[next] == serving.Time(now)*1e9 {
				if now > busy && busy >= 0 {
					told++
				}
				if now >= first {
					counted++
					if busy < 0 || now > busy && !warm(now-busy) {
						cold++
					}
				}
				busy = now + lasts
				next++
			}
			if now >= first && busy >= 0 && now >= busy && warm(now-busy) {
				idle++
			}
		}
		if got.calls != counted || got.cold != cold || int(got.idle.Seconds()) != idle || len(s.told) != told {
			t.Fatalf("seed %d: %+v and %d idle times, by the second %d calls, %d cold, %d s idle, %d idle times", seed,
				got, len(s.told), counted, cold, idle, told)
		}
	}
}

// The embedded traces are complete, and drawMixture has its documented rates.
func TestTraces(t *testing.T) {
	for name, want := range map[string]int{"sporadic": 1529, "periodic": 31211, "bursty": 40786} {
		calls, err := drawRecorded(name, 1)
		if err != nil || len(calls) != want {
			t.Errorf("%s: %d calls, want %d: %v", name, len(calls), want, err)
		}
		n := 0
		for _, s := range callsByInstance(calls) {
			n += len(s)
		}
		if n != want {
			t.Errorf("%s: instances take %d calls of %d", name, n, want)
		}
	}
	// The daily wave shows: more calls in its highest quarter of a day than in its lowest. So do the bursts: more calls
	// in a minute than Poisson arrivals of the hour's rate would have.
	high, low, total := 0, 0, 0
	busyMinutes := 0
	for seed := uint64(1); seed <= 20; seed++ {
		counts := make(map[int]int)
		calls := drawMixture(1, seed)
		for k, at := range calls {
			if k > 0 && at < calls[k-1] {
				t.Fatalf("seed %d: calls are not in order", seed)
			}
			total++
			counts[int(at/serving.Time(time.Minute))]++
			switch hour := int(at/serving.Time(time.Hour)) % 24; {
			case hour >= 3 && hour < 9:
				high++
			case hour >= 15 && hour < 21:
				low++
			}
		}
		for _, n := range counts {
			if n >= 10 {
				busyMinutes++
			}
		}
	}
	// States last, in hours, 1.2 (normal), 0.067 (burst) and 0.2 (lull) for a change on average, so that the mean
	// factor is (1.2 + 0.53 + 0.02)/1.467.
	if mean := float64(total) / 20 / (days * 24 * 60); math.Abs(mean-1.196) > 0.12 {
		t.Errorf("%.3f calls a minute, want 1.196", mean)
	}
	if ratio := float64(high) / float64(low); ratio < 6 || ratio > 14 {
		t.Errorf("%.1f times as many calls at the top of the wave as at its bottom, want (1+0.81)/(1-0.81) = 9.5",
			ratio)
	}
	if busyMinutes < 20*50 {
		t.Errorf("%d minutes of ten calls and more, bursts have hundreds a week", busyMinutes)
	}
}

func TestHoursAt(t *testing.T) {
	curve := []coldIdle{{10, 1}, {6, 2}, {2, 5}}
	for rate, want := range map[float64]float64{12: 1, 10: 1, 8: 1.5, 4: 3.5, 2: 5} {
		if got := idleAtColdRate(curve, rate); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %v %%: %v h, want %v", rate, got, want)
		}
	}
	if got := idleAtColdRate(curve, 1); !math.IsNaN(got) {
		t.Errorf("at 1 %%: %v h, and none has as few cold starts", got)
	}
}

// On mixtures, over three seeds, LSTH has fewer cold starts than HHP. Ours has fewer than HHP on less idle time where
// instances are kept.
func TestPoliciesOnMixtures(t *testing.T) {
	fresh := map[string]func() rules.KeepAlive{}
	for _, k := range keepPolicies {
		fresh[k.name] = func() rules.KeepAlive { return k.make(k.at) }
	}
	for seed := uint64(1); seed <= 3; seed++ {
		for _, mean := range []float64{0.3, 1} {
			calls := drawMixture(mean, seed)
			for _, of := range []string{"app", "instances"} {
				hhp, lsth, ours := evaluate(of, calls, fresh[reference]), evaluate(of, calls, fresh["lsth-0.5"]),
					evaluate(of, calls, fresh["cheapest"])
				if lsth.cold >= hhp.cold {
					t.Errorf("seed %d, %v of %s: lsth %+v, hybridhistogram %+v", seed, mean, of, lsth, hhp)
				}
				if ours.cold >= hhp.cold || of == "instances" && ours.idle >= hhp.idle {
					t.Errorf("seed %d, %v of %s: cheapest %+v, hybridhistogram %+v", seed, mean, of, ours, hhp)
				}
			}
		}
	}
}

// Figure 16 has all its rows, with the published numbers beside them.
func TestFigure16(t *testing.T) {
	all := callTraces
	callTraces = callTraces[:1]
	defer func() { callTraces = all }()
	run := newRunner(reproduce.Request{Figures: []string{"16"}, Seeds: 1, Parallel: 1})
	o, err := study.Run(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	published := 0
	for _, r := range o.Rows {
		if r.Published != nil {
			published++
		}
		if math.IsNaN(r.Measured) {
			t.Errorf("%+v", r)
		}
	}
	if published != 12 || len(o.Charts) != 2 {
		t.Errorf("%d numbers stand beside published ones, %d charts", published, len(o.Charts))
	}
}

var seeds = flag.Int("seeds", 0, "runs of each case of TestBusyMixtures, 3 in the documents; 0 runs a case once")

// On busy mixtures, which Figure 16 does not have, LSTH trades idle time for cold starts and cheapest needs less than
// half of the idle time, kept by instance.
func TestBusyMixtures(t *testing.T) {
	at := func(name string, calls []serving.Time, of string) coldIdle {
		k := keepPolicies[slices.IndexFunc(keepPolicies, func(k keepPolicy) bool { return k.name == name })]
		return evaluate(of, calls, func() rules.KeepAlive { return k.make(k.at) })
	}
	means, runs := []float64{10, 30}, *seeds
	if runs == 0 {
		means, runs = []float64{10}, 1
	}
	for _, mean := range means {
		for seed := range uint64(runs) {
			seed++
			calls := drawMixture(mean, seed)
			for _, of := range []string{"app", "instances"} {
				base := at(reference, calls, of)
				long, cheap := at("lsth-0.5", calls, of), at("cheapest", calls, of)
				t.Logf("%v calls a minute, seed %d, by %s, over %s: lsth %.2f cold starts, %.2f idle time; cheapest "+
					"%.2f and %.2f", mean, seed, of, reference, long.cold/base.cold, long.idle/base.idle,
					cheap.cold/base.cold, cheap.idle/base.idle)
				if of == "instances" && (cheap.cold > base.cold || cheap.idle > base.idle/2) ||
					of == "app" && cheap.cold > 0.03*base.cold {
					t.Errorf("%v calls a minute, seed %d, by %s: cheapest has %+v, %s %+v", mean, seed, of, cheap,
						reference, base)
				}
			}
		}
	}
}
