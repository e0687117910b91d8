package ramsis

import (
	"math"
	"time"

	"gonum.org/v1/gonum/mathext"
)

// tiny probabilities are left out, and what is left out goes where most goes anyway: to nobody having come.
const negligible = 1e-12

// first works out the first steps of the actions of one state.
type firstStep struct {
	*problem
	tables   []map[time.Duration]*table // by stream
	class    int
	weight   []float64 // by phase
	before   []float64 // by edge
	arrivals []float64
}

func newFirstStep(p *problem) *firstStep {
	f := &firstStep{problem: p, before: make([]float64, len(p.edges))}
	for range p.streams {
		f.tables = append(f.tables, make(map[time.Duration]*table))
	}
	return f
}

// at turns to a state.
func (f *firstStep) setState(n, level int) {
	f.class = f.problem.class(n)
	s := f.streams[f.class]
	if len(f.weight) != s.phases {
		f.weight = make([]float64, s.phases)
	}
	s.phaseWeights(n, seconds(f.SLO-f.levels[level]), f.weight)
}

func (f *firstStep) during(took time.Duration) *table {
	t := f.tables[f.class][took]
	if t == nil {
		t = f.table(f.streams[f.class], took)
		f.tables[f.class][took] = t
	}
	return t
}

// all adds the row of a batch of everything that waits: the first arrival since comes in one of the pieces of the time,
// or nobody comes.
func (f *firstStep) addWhole(took time.Duration) {
	if took == 0 {
		f.Next.Add(0, 1)
		return
	}
	t := f.during(took)
	base := 1 + f.class*len(f.level)
	for i, come := range t.come {
		f.before[i] = dot(f.weight, come)
	}
	nobody := 1.0
	for i := range len(t.come) - 1 {
		if x := f.before[i] - f.before[i+1]; x > negligible {
			f.Next.Add(base+i, x)
			nobody -= x
		}
	}
	f.Next.Add(0, max(nobody, 0))
}

// part adds the row of a batch that leaves queries behind. The first of those came as the batch's K-th arrival of the
// process after the first of all, of as many as came in that time, in an order that chance has made even: a beta
// distribution. The paper leaves variable batching to the reader ("follows similar reasoning", §4.4); that its slack
// and how many come during the batch depend on the same phase is neglected.
func (f *firstStep) addPartial(n, level, batch int, took time.Duration) {
	s := f.streams[f.class]
	k := float64(s.phases)
	phase := 0.0
	for r, w := range f.weight {
		phase += float64(r) * w
	}
	came := float64(n-1)*k + phase
	a, b := float64(batch)*k, came-float64(batch)*k+1
	age := seconds(f.SLO - f.levels[level])
	base, l := seconds(f.levels[level]), seconds(took)
	mean := a / (a + b)
	spread := 7 * math.Sqrt(mean*(1-mean)/(a+b+1))
	low := f.levelOf(base + age*max(mean-spread, 0) - l)
	high := f.levelOf(base + age*min(mean+spread, 1) - l)

	f.countArrivals(took)
	left := n - batch
	rest, below := 1.0, 0.0
	for j := low; j <= high; j++ {
		upto := 1.0
		if j < high && age > 0 {
			upto = beta(a, b, (seconds(f.levels[j+1])-base+l)/age)
		}
		x := upto - below
		below = upto
		for more, y := range f.arrivals {
			if x*y < negligible {
				continue
			}
			to := f.overflow()
			if left+more <= f.MaxQueue {
				to = f.state(left+more, j)
			}
			f.Next.Add(f.firstStateNode+to, x*y)
			rest -= x * y
		}
	}
	f.Next.Add(f.firstStateNode+f.state(left, high), max(rest, 0))
}

// arrive sets more: how likely it is that so many come to the worker during a batch; what is beyond the longest queue
// is one.
func (f *firstStep) countArrivals(took time.Duration) {
	f.arrivals = f.arrivals[:0]
	if took == 0 {
		f.arrivals = append(f.arrivals, 1)
		return
	}
	t := f.during(took)
	k := f.streams[f.class].phases
	fewer := func(n int) float64 {
		if n < 0 {
			return 0
		}
		return t.fewer[min(n, len(t.fewer)-1)]
	}
	before := 0.0
	for more := 0; more <= f.MaxQueue; more++ {
		upto := 0.0
		for r, w := range f.weight {
			upto += w * fewer((more+1)*k-r)
		}
		if more == f.MaxQueue {
			upto = 1
		}
		f.arrivals = append(f.arrivals, max(upto-before, 0))
		if before = upto; before > 1-negligible {
			return
		}
	}
}

// beta is the distribution function of the beta distribution.
func beta(a, b, x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	}
	return mathext.RegIncBeta(a, b, x)
}

func dot(a, b []float64) float64 {
	b = b[:len(a)]
	x, y := 0.0, 0.0
	i := 0
	for ; i+1 < len(a); i += 2 {
		x += a[i] * b[i]
		y += a[i+1] * b[i+1]
	}
	if i < len(a) {
		x += a[i] * b[i]
	}
	return x + y
}
