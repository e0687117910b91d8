package rules

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

type idled struct {
	at   serving.Time
	idle time.Duration
}

// recorded are the idle times in minutes, cut off at four hours, that a histogram of so many slices still holds at a
// time.
func recorded(all []idled, now serving.Time, tracked time.Duration, slices int) (in []int, out int) {
	slice := int64(tracked) / int64(slices)
	for _, x := range all {
		if int64(x.at)/slice <= int64(now)/slice-int64(slices) {
			continue
		}
		if m := int(x.idle / time.Minute); m < 240 {
			in = append(in, m)
		} else {
			out++
		}
	}
	return in, out
}

// recordedHeadAndTail returns the rounded percentiles of idle times in minutes, and whether HHP relies on them.
func recordedHeadAndTail(in []int) (head, tail float64, representative bool) {
	if len(in) < 5 {
		return 0, 0, false
	}
	in = slices.Clone(in)
	slices.Sort(in)
	counts := make([]float64, 240)
	for _, m := range in {
		counts[m]++
	}
	mean, variance := float64(len(in))/240, 0.0
	for _, c := range counts {
		variance += (c - mean) * (c - mean) / 240
	}
	rank := func(p float64) int { return in[int(math.Ceil(p*float64(len(in))-1e-9))-1] }
	return float64(rank(0.05)), float64(rank(0.99) + 1), math.Sqrt(variance)/mean >= 2
}

// idleTimes feeds keep-alive rules random idle times of several distributions and calls check before each.
func idleTimes(seed uint64, rules []KeepAlive, check func(all []idled, now serving.Time)) {
	rng := rand.New(rand.NewPCG(seed, 6))
	var all []idled
	now := serving.Time(0)
	mean, steady := 1.0, false
	for range 400 {
		if rng.IntN(40) == 0 {
			mean, steady = math.Exp(rng.Float64()*7-1), rng.IntN(3) == 0
		}
		gap := mean * rng.ExpFloat64()
		if steady {
			gap = mean * (0.95 + 0.1*rng.Float64())
		}
		idle := time.Duration(gap * float64(time.Minute))
		check(all, now)
		now = now.Add(idle)
		all = append(all, idled{now, idle})
		for _, k := range rules {
			k.Idled(now, idle)
		}
	}
}

func minutes(m float64) time.Duration { return time.Duration(m * float64(time.Minute)) }

func near(a, b Span) bool {
	return (a.From-b.From).Abs() < time.Millisecond && (a.To-b.To).Abs() < time.Millisecond
}

// HHP and LSTH against percentiles of all idle times recorded.
func TestHistogramsAgainstRecorded(t *testing.T) {
	took := map[string]int{}
	for seed := uint64(1); seed <= 30; seed++ {
		hhp, lsth := NewHybridHistogram(0), NewLSTH()
		lsth.Gamma = 0.3
		idleTimes(seed, []KeepAlive{hhp, lsth}, func(all []idled, now serving.Time) {
			window := func(tracked time.Duration, slices int) (Span, bool) {
				in, out := recorded(all, now, tracked, slices)
				if 2*out > len(in)+out {
					last := append([]idled(nil), all[max(len(all)-8, 0):]...)
					for i := range last { // the median, by selection
						for j := i + 1; j < len(last); j++ {
							if last[j].idle < last[i].idle {
								last[i], last[j] = last[j], last[i]
							}
						}
					}
					x := last[len(last)/2].idle.Minutes()
					took["forecast"]++
					return Span{minutes(0.85 * x), minutes(1.15 * x)}, false
				}
				head, tail, representative := recordedHeadAndTail(in)
				if !representative {
					took["standard"]++
					return Span{0, 4 * time.Hour}, false
				}
				took["histogram"]++
				return Span{minutes(0.9 * head), minutes(1.1 * tail)}, true
			}
			want, _ := window(4*time.Hour, 16)
			if got := hhp.Warm(now); len(got) != 1 || !near(got[0], want) {
				t.Fatalf("seed %d after %d idle times: hybridhistogram %v, by definition %v", seed, len(all), got, want)
			}
			long, representative := window(24*time.Hour, 24)
			in, _ := recorded(all, now, time.Hour, 12)
			if head, tail, too := recordedHeadAndTail(in); representative && too {
				took["both"]++
				long.From = minutes(0.3*long.From.Minutes() + 0.7*0.9*head)
				long.To = minutes(0.3*long.To.Minutes() + 0.7*1.1*tail)
			}
			if got := lsth.Warm(now); len(got) != 1 || !near(got[0], long) {
				t.Fatalf("seed %d after %d idle times: lsth %v, by definition %v", seed, len(all), got, long)
			}
		})
	}
	for _, how := range []string{"forecast", "standard", "histogram", "both"} {
		if took[how] < 100 {
			t.Errorf("%s came about %d times only", how, took[how])
		}
	}
}

// Cheapest against a search through all spans of whole minutes: its answer costs least of those that begin at once, or
// least of all and a tenth less than that.
func TestCheapestAgainstSearch(t *testing.T) {
	later := 0
	for seed := uint64(1); seed <= 6; seed++ {
		price := math.Exp(float64(seed))
		c := NewCheapest(minutes(price))
		idleTimes(seed, []KeepAlive{c}, func(all []idled, now serving.Time) {
			if len(all)%7 != 0 {
				return
			}
			var counts [241]float64
			for k := range 241 {
				counts[k] = 4 / (1 + float64(k)/price)
				if k < 240 {
					counts[k] -= 4 / (1 + float64(k+1)/price)
				}
			}
			for _, l := range []struct {
				tracked time.Duration
				slices  int
				counts  float64
			}{{7 * 24 * time.Hour, 14, 1}, {24 * time.Hour, 24, 3}, {time.Hour, 12, 10}} {
				in, out := recorded(all, now, l.tracked, l.slices)
				for _, m := range in {
					counts[m] += l.counts
				}
				counts[240] += l.counts * float64(out)
			}
			cost := func(from, to int) float64 {
				sum := 0.0
				for m, n := range counts {
					switch {
					case m < from:
						sum += n * price
					case m >= to:
						sum += n * (price + float64(to-from))
					default:
						sum += n * (float64(m-from) + 0.5)
					}
				}
				return sum
			}
			first, best := math.Inf(1), math.Inf(1)
			for from := 0; from < 240; from += 3 {
				for to := from; to <= 240; to += 1 + to/40 {
					x := cost(from, to)
					best = min(best, x)
					if from == 0 {
						first = min(first, x)
					}
				}
			}
			got := c.Warm(now)[0]
			x := cost(int(got.From/time.Minute), int(got.To/time.Minute))
			if got.From > 0 {
				later++
			}
			if got.From > 0 && (x > best+1e-6 || x > 0.9*first+1e-6) || got.From == 0 &&
				(x > first+1e-6 || best < 0.9*first-1e-6 && best < x*0.9-1e-6) {
				t.Fatalf("seed %d after %d idle times, price %v: %v costs %v; from the beginning %v will do, at all %v",
					seed, len(all), price, got, x, first, best)
			}
		})
	}
	if later < 10 {
		t.Errorf("a later span was chosen %d times only", later)
	}
}

// An app with regular calls is warm at each of them and let go in between.
func TestClockwork(t *testing.T) {
	for _, k := range []KeepAlive{NewHybridHistogram(0), NewLSTH(), NewCheapest(0)} {
		now := serving.Time(0)
		for range 20 {
			now = now.Add(50 * time.Minute)
			k.Idled(now, 50*time.Minute)
		}
		if s := k.Warm(now); len(s) != 1 || s[0].From < 40*time.Minute || s[0].From > 50*time.Minute ||
			s[0].To < 50*time.Minute || s[0].To > time.Hour {
			t.Errorf("%s: %v", k.Name(), s)
		}
	}
	if s := (&FixedKeepAlive{}).Warm(5); len(s) != 1 || s[0] != (Span{0, 300 * time.Second}) {
		t.Errorf("keepalive: %v", s)
	}
}

func BenchmarkWarm(b *testing.B) {
	for _, k := range []KeepAlive{&FixedKeepAlive{}, NewHybridHistogram(0), NewLSTH(), NewCheapest(0)} {
		b.Run(k.Name(), func(b *testing.B) {
			now := serving.Time(0)
			rng := rand.New(rand.NewPCG(1, 1))
			b.ReportAllocs()
			for b.Loop() {
				idle := minutes(rng.ExpFloat64())
				now = now.Add(idle)
				k.Idled(now, idle)
				k.Warm(now)
			}
		})
	}
}

// A fresh rule that recalls a record decides as the old one, although its time starts at zero. A record that is cut off
// is refused, and the app's rule starts from nothing.
func TestRememberAndRecall(t *testing.T) {
	for name, keepAlive := range map[string]func() KeepAlive{
		"hybridhistogram": func() KeepAlive {
			return NewHybridHistogram(0)
		}, "lsth": func() KeepAlive { return NewLSTH() }, "cheapest": func() KeepAlive { return NewCheapest(0) },
		"keepalive": func() KeepAlive { return &FixedKeepAlive{} },
	} {
		before, after := NewRateBands(keepAlive), NewRateBands(keepAlive)
		rng := rand.New(rand.NewPCG(1, 7))
		now := serving.Time(0)
		for range 300 {
			idle := minutes(20 + 20*rng.Float64())
			now = now.Add(idle)
			before.Invoked(now, 1, idle)
		}
		// where a slice of every histogram begins
		now = now - now%serving.Time(12*time.Hour) + serving.Time(12*time.Hour)
		b := before.Remember(1, now)
		if err := after.Recall(1, b, 0, 2*time.Hour); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := slices.Clone(before.app(1).keepAlive.Warm(now.Add(2 * time.Hour)))
		if got := after.app(1).keepAlive.Warm(0); !slices.Equal(got, want) {
			t.Errorf("%s: %v, without a break %v", name, got, want)
		}
		if name == "keepalive" {
			continue
		}
		if err := after.Recall(2, b[:len(b)-1], 0, 0); err == nil {
			t.Errorf("%s: what is cut off was recalled", name)
		}
		if got, want := after.app(2).keepAlive.Warm(0), keepAlive().Warm(0); !slices.Equal(got, want) {
			t.Errorf("%s: after an error %v, a fresh one has %v", name, got, want)
		}
	}
}
