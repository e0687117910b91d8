package workload

import (
	"math/rand/v2"

	"github.com/sluice-serving/sluice/serving"
)

// Process is a renewal process of rate one mapped onto a rate function. It implements Times.
type Process struct {
	rate  *Rate
	gaps  Gaps
	r     *rand.Rand
	n     float64 // operational time: expected queries so far
	piece int
	last  serving.Time
	done  bool
}

// NewProcess returns the arrival times of gaps stretched to rate, with random numbers from r. It keeps all three.
// Uniform gaps begin half a gap after the start, so that n seconds at a rate of k hold exactly n x k arrivals.
func NewProcess(rate *Rate, gaps Gaps, r *rand.Rand) *Process {
	p := &Process{rate: rate, gaps: gaps, r: r}
	if _, even := gaps.(Uniform); even {
		p.n = -0.5
	}
	return p
}

// NextTime returns the next arrival time. It returns false when no further arrival is expected within a year.
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
	p.last = max(p.last, serving.Time(s*1e9)) // rounding must not make time go back
	return p.last, true
}

// Times yields arrival times in non-decreasing order, and false after the last one.
type Times interface {
	NextTime() (serving.Time, bool)
}

// Trace is Times that were recorded.
type Trace struct {
	times []serving.Time
	next  int
}

// NewTrace returns Times over times, which must be sorted and must not change while they are read.
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

// App is a source of the queries of one app: it adds to every time the other properties of a query.
type App struct {
	Times Times
	// Template has these properties. Its time, and its items and sample where they are drawn, are replaced.
	Template Arrival
	// Sizes draws Items with random numbers from SizeRand. Nil leaves the template's.
	Sizes    Sizes
	SizeRand *rand.Rand
	// Lengths draws Length with random numbers from LengthRand. Nil leaves the template's.
	Lengths    Sizes
	LengthRand *rand.Rand
	// Samples is the number of labelled inputs. Sample is drawn from them with random numbers from SampleRand, so that
	// a query of several items finds that many consecutive inputs. 0 makes Sample -1.
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
	if a.Lengths != nil {
		out.Length = a.Lengths.Draw(a.LengthRand)
	}
	out.Sample = -1
	if a.Samples > 0 {
		out.Sample = a.SampleRand.Int32N(max(1, a.Samples-out.Items+1))
	}
	return out, true
}
