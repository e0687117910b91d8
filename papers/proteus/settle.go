package proteus

import "context"

// settle keeps as many running variants as the tolerance allows, and gives idle workers variants.
func (m *problem) settle(ctx context.Context, out *found) {
	if m.o.Goal != Throughput {
		if out.fractions == nil {
			out.fractions = m.fractions(out.allocation)
		}
		if len(m.byWorker) > 0 && m.o.Tolerance > 0 {
			m.reduceLoads(ctx, out)
		}
	}
	counts := append([]int(nil), out.counts...)
	m.useIdleWorkers(counts)
	if m.o.Goal == Throughput {
		out.multiple = m.multiple(counts)
	}
	// A multiple below 1 is that of the app that is worst off; the others get what they ask for as far as possible.
	out.allocation = m.rate(counts, max(1, out.multiple))
}

// reduceLoads looks for an allocation that loads less than out and is as good within the tolerance: first the running
// one, then those that a search from there reaches if a load costs the tolerance, a quarter of it, and so on. Without
// this, demand that varies by some per cent between two plans would cause loads for a slightly better plan each time.
func (m *problem) reduceLoads(ctx context.Context, out *found) {
	have := m.running()
	least := m.value(out.counts, out.fractions) - m.o.Tolerance
	fine := func(counts []int) bool {
		now := m.rate(counts, 1)
		if !m.serves(now, out.fractions) || m.value(counts, out.fractions) < least {
			return false
		}
		out.allocation = now
		return true
	}
	if fine(have) {
		return
	}
	c := m.newLocalSearch(ctx, have, out.fractions)
	for price := m.o.Tolerance; price > c.keepReward && m.loads(out.counts) > 1; price /= 4 {
		x := m.newLocalSearch(ctx, have, out.fractions)
		x.setKeepReward(price)
		if x.climb(); m.loads(x.counts) < m.loads(out.counts) && fine(x.counts) {
			return
		}
	}
}

// loads returns how many variants have to be loaded for counts.
func (m *problem) loads(counts []int) (n int) {
	for k, have := range m.running() {
		n += max(0, counts[k]-have)
	}
	return n
}

// serves reports whether a serves as much as the fractions say, up to a negligible part of the tolerance.
func (m *problem) serves(a *allocation, fractions []float64) bool {
	room := max(servedTolerance, m.o.Tolerance/shedCost)
	b := &allocation{served: fractions}
	m.fillScores(b)
	for k := range a.least {
		if a.least[k] < b.least[k]-room {
			return false
		}
	}
	return a.servedShare >= b.servedShare-room
}

// covers reports whether a serves of every stage what the fractions say.
func (m *problem) covers(a *allocation, fractions []float64) bool {
	for s, f := range fractions {
		if a.served[s] < f*(1-1e-9) {
			return false
		}
	}
	return true
}

// sheds reports whether some of the demand is not served.
func (m *problem) sheds(a *allocation) bool {
	for _, f := range a.served {
		if f < 1-1e-6 {
			return true
		}
	}
	return false
}
