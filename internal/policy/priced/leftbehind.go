package priced

import "github.com/sluice-serving/sluice/serving"

// leftBehind keeps sums of what the tasks that wait at a stage are worth if they are left for later, over a range of
// them. Batches are compared one after the other: the next one's tasks overlap with that range, or follow on it.
type leftBehind struct {
	sums     []float64 // from position from to position to; the first n tasks' worth at [n], but for a constant
	from, to int       // to is negative before the first
	wait     float64   // how long tasks that are left wait for the next machine, s
}

// reset forgets the sums; n tasks wait.
func (l *leftBehind) reset(n int) { l.sums, l.from, l.to = sized(l.sums, n+1), 0, -1 }

// value returns what n tasks, from the i-th on, are worth if they are left behind by a batch that takes t seconds.
func (l *leftBehind) value(x *stage, a *app, now serving.Time, i, n int, t float64) float64 {
	if wait := x.waitFor(x.single, t); i > l.to || i+n < l.from || wait != l.wait {
		l.from, l.to, l.sums[i], l.wait = i, i, 0, wait
	}
	for ; l.to < i+n; l.to++ {
		l.sums[l.to+1] = l.sums[l.to] + x.later(a, now, l.to, l.wait)
	}
	for ; l.from > i; l.from-- {
		l.sums[l.from-1] = l.sums[l.from] - x.later(a, now, l.from-1, l.wait)
	}
	return l.sums[i+n] - l.sums[i]
}

// later returns what the k-th task that waits is worth if it is left behind and waits so many seconds for a machine.
func (x *stage) later(a *app, now serving.Time, k int, wait float64) float64 {
	y := &x.waiting[k]
	return x.valueOf(a, x.single, y.dueIn(now)-wait, y.part, 1)
}
