package infless

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
)

// days is how long the traces are.
const days = 7

// coldCount is what a policy made of a trace.
type coldCount struct {
	calls, cold int
	idle        time.Duration // that something was warm and had nothing to do
	span        time.Duration // that was counted
}

// coldPercent is the share of calls that start cold, in per cent.
func (t coldCount) coldPercent() float64 { return 100 * float64(t.cold) / float64(max(t.calls, 1)) }

// idleHoursPerDay of idle time in a day.
func (t coldCount) idleHoursPerDay() float64 { return 24 * t.idle.Hours() / t.span.Hours() }

// replay lets a policy see the calls of one app, each executing for a time; calls that come while one does are part of
// the same busy time. A call that finds nothing warm is a cold start, the first one included. What is before first is
// seen and not counted.
func replay(k scale.Keeper, calls []serving.Time, lasts time.Duration, first, end serving.Time) coldCount {
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

// callsByInstance are, for the first instance, the second and so on, the minutes in which so many calls come that it is needed:
// one instance takes one call a minute.
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

// drawRecorded draws the calls of a carried trace: as many in every minute as it has, each anywhere in the minute.
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

// drawMixture makes calls with both a daily period and bursts (INFless Figure 9a): a Poisson process whose rate is mean
// times the day's wave, 1 + 0.9 sin, times that of a state. The states are, with the part of the changes that lead to
// them and the mean of how long they last: usual (0.6, two hours), a burst of eight times as many calls (0.2, 20
// minutes) and a lull of a tenth as many (0.2, one hour).
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
