package infless

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/papers/infless/rules"
	"github.com/sluice-serving/sluice/serving"
)

// days is the length of the traces.
const days = 7

// coldCount is the result of a keep-alive policy on a trace.
type coldCount struct {
	calls, cold int
	idle        time.Duration // time during which an instance was warm without work
	span        time.Duration // time over which calls, cold and idle were counted
}

// coldPercent returns the share of calls that start cold, in per cent.
func (t coldCount) coldPercent() float64 { return 100 * float64(t.cold) / float64(max(t.calls, 1)) }

// idleHoursPerDay returns the mean idle time in a day, in hours.
func (t coldCount) idleHoursPerDay() float64 { return 24 * t.idle.Hours() / t.span.Hours() }

// replay runs a keep-alive policy on the calls of one app. Every call runs for lasts; calls during a run belong to the
// same busy period. A call that finds no warm instance is a cold start, also the first one. The policy sees calls
// before first, but they are not counted.
func replay(k rules.KeepAlive, calls []serving.Time, lasts time.Duration, first, end serving.Time) coldCount {
	out := coldCount{span: end.Sub(first)}
	for n, at := range calls {
		if at >= first {
			out.calls++
			if n == 0 {
				out.cold++
			}
		}
		since, until := at.Add(lasts), end
		if n+1 < len(calls) {
			until = calls[n+1]
		}
		if until <= since {
			continue
		}
		warm := false
		for _, s := range k.Warm(since) {
			from, to := since.Add(s.From), since.Add(s.To)
			warm = warm || from <= until && until < to
			out.idle += max(min(to, until).Sub(max(from, first)), 0)
		}
		if n+1 < len(calls) {
			if !warm && until >= first {
				out.cold++
			}
			k.Idled(until, until.Sub(since))
		}
	}
	return out
}

// callsByInstance splits calls among instances, each of which takes one call a minute. Entry k has the minutes in which
// more than k calls come, so that instance k is needed.
func callsByInstance(calls []serving.Time) [][]serving.Time {
	var out [][]serving.Time
	minute, n := serving.Time(-1), 0
	for _, at := range calls {
		if m := at / serving.Time(time.Minute); m != minute {
			minute, n = m, 0
		}
		if n == len(out) {
			out = append(out, nil)
		}
		out[n] = append(out[n], minute*serving.Time(time.Minute))
		n++
	}
	return out
}

// drawRecorded draws the calls of an embedded trace: for every minute as many as were recorded, at random times within
// it.
func drawRecorded(name string, seed uint64) ([]serving.Time, error) {
	minutes, err := callsByMinute(name)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 16))
	var out []serving.Time
	for m, n := range minutes {
		for range n {
			out = append(out, serving.Time(m)*serving.Time(time.Minute)+serving.Time(rng.Int64N(int64(time.Minute))))
		}
	}
	slices.Sort(out)
	return out, nil
}

// drawMixture draws calls with a daily period and bursts (INFless Figure 9a). They are a Poisson process with a rate of
// mean calls a minute, times a daily wave of 1 + 0.9 sin, times the factor of a state. States last for exponential
// times: normal (factor 1, mean two hours, 0.6 of all changes), a burst (8, 20 minutes, 0.2) and a lull (0.1, one hour,
// 0.2).
func drawMixture(mean float64, seed uint64) []serving.Time {
	rng := rand.New(rand.NewPCG(seed, uint64(1000*mean)))
	const end = days * 24 * 60.0
	const wave = 0.9
	var out []serving.Time
	state, until := 1.0, 0.0
	for now := 0.0; now < end; {
		if now >= until {
			lasts := 0.0
			switch x := rng.Float64(); {
			case x < 0.6:
				state, lasts = 1, 120
			case x < 0.8:
				state, lasts = 8, 20
			default:
				state, lasts = 0.1, 60
			}
			until = now + lasts*rng.ExpFloat64()
		}
		top := mean * state * (1 + wave)
		next := now + rng.ExpFloat64()/top
		if next > until {
			now = until
			continue
		}
		now = next
		if now < end && rng.Float64()*(1+wave) < 1+wave*math.Sin(2*math.Pi*now/(24*60)) {
			out = append(out, serving.Time(now*float64(time.Minute)))
		}
	}
	return out
}
