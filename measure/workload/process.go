package workload

import (
	"math/rand/v2"

	"github.com/sluice-serving/sluice/serving"
)

// Process is a renewal process of rate one mapped onto a rate function. It yields times; App turns them into arrivals.
type Process struct {
	rate  *Rate
	gaps  Gaps
	r     *rand.Rand
	n     float64 // operational time: queries expected so far
	piece int
	last  serving.Time
	done  bool
}

// NewProcess returns the arrival times of gaps stretched to rate, with random numbers from r. Uniform gaps start half a
// gap in, so that a whole number of seconds at a whole rate holds exactly rate x seconds arrivals.
func NewProcess(rate *Rate, gaps Gaps, r *rand.Rand) *Process {
	p := &Process{rate: rate, gaps: gaps, r: r}
	if _, even := gaps.(Uniform); even {
		p.n = -0.5
	}
	return p
}

// NextTime returns the next arrival time. It returns false when the rate has fallen to zero for good, or a year has
// passed.
func (p *Process) NextTime() (serving.Time, bool) {
	if p.done {
		return 0, false
	}
	p.n += p.gaps.Gap(p.r)
	var s float64
	s, p.piece = p.rate.inverse(p.n, p.piece)
	if !(s*1e9 <= maxTime) {
		p.done = true
		return 0, false
	}
	p.last = max(p.last, serving.Time(s*1e9)) // rounding must not turn time back
	return p.last, true
}

// Times yields arrival times in order: a Process or a Trace.
type Times interface {
	NextTime() (serving.Time, bool)
}

// Trace yields recorded times.
type Trace struct {
	times []serving.Time
	next  int
}

// NewTrace yields times, which must be sorted.
func NewTrace(times []serving.Time) *Trace { return &Trace{times: times} }

// NextTime implements Times.
func (t *Trace) NextTime() (serving.Time, bool) {
	if t.next >= len(t.times) {
		return 0, false
	}
	at := t.times[t.next]
	t.next++
	return at, true
}

// App gives every time of an arrival process the rest of what makes a query.
type App struct {
	Times Times
	// Template is copied into every arrival.
	Template Arrival
	// Sizes draws Items with random numbers from SizeRand; nil leaves the template's.
	Sizes    Sizes
	SizeRand *rand.Rand
	// Samples is the number of labelled inputs to draw from, with random numbers from SampleRand; 0 leaves Sample at
	// -1. A query of several items takes that many consecutive inputs, so Sample is at most Samples - Items.
	Samples    int32
	SampleRand *rand.Rand
}

// Next implements Source.
func (a *App) Next() (Arrival, bool) {
	at, ok := a.Times.NextTime()
	if !ok {
		return Arrival{}, false
	}
	out := a.Template
	out.At = at
	if a.Sizes != nil {
		out.Items = a.Sizes.Draw(a.SizeRand)
	}
	if out.Items < 1 {
		out.Items = 1
	}
	out.Sample = -1
	if a.Samples > 0 {
		out.Sample = a.SampleRand.Int32N(max(1, a.Samples-out.Items+1))
	}
	return out, true
}
