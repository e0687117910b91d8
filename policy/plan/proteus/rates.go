package proteus

import "math"

// allocation is a choice of counts with the best rates for them.
type allocation struct {
	counts []int     // workers by pair
	rates  []float64 // items/s by pair, of all its workers
	served []float64 // fraction of the demand, by stage
	// score is what the program maximises, without the reward for what is kept.
	score float64
	mean  float64 // normalised accuracy over what is served
	worst float64 // of the stages' normalised accuracies the smallest
}

// rate finds the best rates for given counts: with the counts fixed the program falls apart into stages, and each is served
// by its most accurate workers first. multiple scales the demand; 1 serves it.
func (m *problem) rate(counts []int, multiple float64) *allocation {
	a := &allocation{counts: counts, rates: make([]float64, len(m.pairs)), served: make([]float64, len(m.stages)), worst: 1}
	var gain, weight float64
	for s := range m.stages {
		st := &m.stages[s]
		served, sum := m.serve(s, counts, multiple, a.rates)
		a.served[s] = served / st.demand
		gain += st.weight * sum
		weight += st.weight * served
		if served > 0 {
			a.worst = min(a.worst, sum/served)
		} else {
			a.worst = 0
		}
	}
	if weight > 0 {
		a.mean = gain / weight
	}
	a.score = m.score(a)
	return a
}

// serve gives a stage's demand to its workers, the most accurate first; pairs of one accuracy share it in proportion to what
// they carry. It returns the items/s served and the sum of their values; rates, by pair, may be nil.
func (m *problem) serve(s int, counts []int, multiple float64, rates []float64) (served, sum float64) {
	st := &m.stages[s]
	left := st.demand * multiple
	for at := 0; at < len(st.pairs); {
		to, able, value := at, 0.0, m.pairs[st.pairs[at]].value
		for ; to < len(st.pairs) && m.pairs[st.pairs[to]].value == value; to++ {
			able += float64(counts[st.pairs[to]]) * m.pairs[st.pairs[to]].rate
		}
		if able > 0 {
			part := min(1, left/able)
			if rates != nil {
				for _, k := range st.pairs[at:to] {
					rates[k] = part * float64(counts[k]) * m.pairs[k].rate
				}
			}
			served += part * able
			sum += value * part * able
			left = max(0, left-part*able)
		}
		at = to
	}
	return served, sum
}

// score is the value of an allocation: served fractions before everything, heavier classes first, then the goal.
func (m *problem) score(a *allocation) float64 {
	out, price := 0.0, float64(shedding)
	for _, c := range m.classes() {
		least := math.Inf(1)
		for _, s := range c.stages {
			least = min(least, a.served[s])
		}
		if m.o.Goal != Throughput {
			least = min(least, 1)
		}
		if m.o.Goal == Throughput {
			out += price * least
		} else {
			out -= price * (1 - least)
		}
		price *= shedding
	}
	return out + m.worth(a)
}

// worth is the goal's part of the score.
func (m *problem) worth(a *allocation) float64 {
	switch m.o.Goal {
	case Fairness:
		return a.worst + 0.001*a.mean
	case Blend:
		return m.o.Lambda*a.worst + (1-m.o.Lambda)*a.mean
	case Throughput:
		return 0.001 * a.mean
	}
	return a.mean
}
