package ramsis

import (
	"math"
	"time"

	"gonum.org/v1/gonum/mathext"
)

// negligible is the probability below which an outcome is left out. It is added to the outcome of no arrival, the most
// likely one.
const negligible = 1e-12

// firstStep computes the distributions of the first steps of one state's actions.
type firstStep struct {
	*problem
	tables []map[time.Duration]*table // by stream
	// index of the state's stream
	class  int
	weight []float64 // by phase
	before []float64 // by edge
	// by number: probability of so many arrivals during a batch
	arrivals []float64
}

func newFirstStep(p *problem) *firstStep {
	f := &firstStep{problem: p, before: make([]float64, len(p.edges))}
	for range p.streams {
		f.tables = append(f.tables, make(map[time.Duration]*table))
	}
	return f
}

// setState turns to the state of n waiting queries at a slack level.
func (f *firstStep) setState(n, level int) {
	f.class = f.problem.class(n)
	s := f.streams[f.class]
	if len(f.weight) != s.phases {
		f.weight = make([]float64, s.phases)
	}
	s.phaseWeights(n, seconds(f.SLO-f.levels[level]), f.weight)
}

// during returns the table of the state's stream for a time.
func (f *firstStep) during(took time.Duration) *table {
	t := f.tables[f.class][took]
	if t == nil {
		t = f.table(f.streams[f.class], took)
		f.tables[f.class][took] = t
	}
	return t
}

// addWhole adds the row of a batch of all queries that wait. The first arrival after its start comes in one of the
// pieces of the time, or there is none.
func (f *firstStep) addWhole(took time.Duration) {
	if took == 0 {
		f.Next.Add(0, 1)
		return
	}
	t := f.during(took)
	base := 1 + f.class*len(f.level)
	for i, come := range t.arrivesBefore {
		f.before[i] = dot(f.weight, come)
	}
	nobody := 1.0
	for i := range len(t.arrivesBefore) - 1 {
		if x := f.before[i] - f.before[i+1]; x > negligible {
			f.Next.Add(base+i, x)
			nobody -= x
		}
	}
	f.Next.Add(0, max(nobody, 0))
}

// addPartial adds the row of a batch that leaves queries behind. Their first one is the batch*K-th arrival of the
// process after the first query. Given how many arrivals came in that time, its age has a beta distribution, because
// the order of arrivals is uniform. The paper leaves variable batching to the reader ("follows similar reasoning",
// §4.4). It is neglected that the slack and the number of arrivals during the batch depend on the same phase.
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
		cumulative := 1.0
		if j < high && age > 0 {
			cumulative = beta(a, b, (seconds(f.levels[j+1])-base+l)/age)
		}
		x := cumulative - below
		below = cumulative
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

// countArrivals sets arrivals for a batch that takes so long. More arrivals than the longest queue count as the longest
// queue.
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
		cumulative := 0.0
		for r, w := range f.weight {
			cumulative += w * fewer((more+1)*k-r)
		}
		if more == f.MaxQueue {
			cumulative = 1
		}
		f.arrivals = append(f.arrivals, max(cumulative-before, 0))
		if before = cumulative; before > 1-negligible {
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
