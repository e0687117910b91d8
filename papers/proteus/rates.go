package proteus

import (
	"math"

	"github.com/sluice-serving/sluice/serving"
)

// allocation is a choice of counts with the best rates for them.
type allocation struct {
	counts      []int     // workers by pair
	rates       []float64 // items/s by pair, of all its workers
	served      []float64 // part of the demand, by stage
	least       []float64 // by class, the served part of its worst served stage, at most 1
	servedShare float64   // served part of all queries, weighed by importance
	mean        float64   // normalised accuracy of what is served
	worst       float64   // smallest normalised accuracy of a stage
	score       float64   // the goal's value of what is served
}

// servedTolerance is the difference of served parts that counts as none.
const servedTolerance = 1e-6

// better reports whether a is preferred to b. The served parts count before everything else, those of more important
// classes first.
func (a *allocation) better(b *allocation) bool {
	for k := len(a.least) - 1; k >= 0; k-- {
		if d := a.least[k] - b.least[k]; d > servedTolerance || d < -servedTolerance {
			return d > 0
		}
	}
	if d := a.servedShare - b.servedShare; d > servedTolerance || d < -servedTolerance {
		return d > 0
	}
	return a.score > b.score
}

// rate finds the best rates for counts. With fixed counts the program decomposes into stages, and each is served by its
// most accurate workers first. multiple scales the demand; 1 serves it.
func (m *problem) rate(counts []int, multiple float64) *allocation {
	a := &allocation{
		counts: counts, rates: make([]float64, len(m.pairs)), served: make([]float64, len(m.stages)), worst: 1,
	}
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
	m.fillScores(a)
	return a
}

// serve distributes a multiple of a stage's demand over its workers, the most accurate first. Pairs of equal accuracy
// share it in proportion to what they carry. It returns the items/s served and the sum of their accuracies. rates, by
// pair, is filled in unless nil.
func (m *problem) serve(s int, counts []int, multiple float64, rates []float64) (served, sum float64) {
	st := &m.stages[s]
	left := st.demand * multiple
	for at := 0; at < len(st.pairs); {
		to, able, value := at, 0.0, m.pairs[st.pairs[at]].accuracy
		for ; to < len(st.pairs) && m.pairs[st.pairs[to]].accuracy == value; to++ {
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

// fillScores fills in how good an allocation is.
func (m *problem) fillScores(a *allocation) {
	for _, c := range m.classes() {
		least := 1.0
		for _, s := range c.stages {
			least = min(least, a.served[s])
		}
		a.least = append(a.least, least)
	}
	all := 0.0
	for n, f := range m.byApp(a) {
		queries := m.queries(serving.AppID(n))
		a.servedShare += f * queries
		all += queries
	}
	a.servedShare /= all
	a.score = m.goalValue(a.mean, a.worst)
}

// queries returns an app's demand times its importance.
func (m *problem) queries(app serving.AppID) float64 {
	x := &m.spec.Apps[app]
	return x.Weight * m.stages[x.Stages[0]].demand
}

// byApp returns the served part of each app's queries: that of its least served stage, at most 1.
func (m *problem) byApp(a *allocation) []float64 {
	out := make([]float64, len(m.spec.Apps))
	for n := range out {
		out[n] = 1
		for _, s := range m.spec.Apps[n].Stages {
			out[n] = min(out[n], a.served[s])
		}
	}
	return out
}

// fractions returns, by stage, the part of its app's demand that an allocation serves, for a search that keeps to it.
// If that is not all, it is reduced by a part of the gap. The most that a fleet can serve leaves no choice of accuracy,
// but a little less does, and searchServed knows the most only to within the gap.
func (m *problem) fractions(a *allocation) []float64 {
	out := make([]float64, len(m.stages))
	by := m.byApp(a)
	for s := range out {
		if out[s] = by[m.stages[s].App]; out[s] < 1-servedTolerance {
			out[s] *= 1 - max(m.o.Gap/2, 1e-9) // also for the solver's rounding
		} else {
			out[s] = 1
		}
	}
	return out
}

// value returns the goal's value of counts when the given part of each stage's demand is served, or as much of it as
// possible.
func (m *problem) value(counts []int, fractions []float64) float64 {
	var gain, weight float64
	worst := 1.0
	for s := range m.stages {
		if fractions[s] == 0 {
			continue
		}
		served, sum := m.serve(s, counts, fractions[s], nil)
		gain += m.stages[s].weight * sum
		weight += m.stages[s].weight * served
		if served > 0 {
			worst = min(worst, sum/served)
		} else {
			worst = 0
		}
	}
	if weight == 0 {
		return 0
	}
	return m.goalValue(gain/weight, worst)
}

// multiple returns the largest multiple of the demand that counts carry.
func (m *problem) multiple(counts []int) float64 {
	out := math.Inf(1)
	for s := range m.stages {
		able := 0.0
		for _, k := range m.stages[s].pairs {
			able += float64(counts[k]) * m.pairs[k].rate
		}
		out = min(out, able/m.stages[s].demand)
	}
	return out
}

// objective returns what the program maximises: value, and the reward for kept workers.
func (m *problem) objective(counts []int, fractions []float64) float64 {
	out := m.value(counts, fractions)
	have, each := m.keepRewards()
	for k, n := range have {
		out += each * float64(min(n, counts[k]))
	}
	return out
}

// keepRewards returns, by pair, the workers that run it, and the reward for each that goes on doing so. All rewards
// together equal the tolerance.
func (m *problem) keepRewards() (have []int, each float64) {
	have = m.running()
	total := 0
	for _, n := range have {
		total += n
	}
	if total > 0 && m.o.Tolerance > 0 {
		each = m.o.Tolerance / float64(total)
	}
	return have, each
}

// goal returns the weights of the mean and of the smallest normalised accuracy.
func (m *problem) goal() (mean, smallest float64) {
	switch m.o.Goal {
	case Fairness:
		return 0.001, 1 // the mean decides among equals only
	case Blend:
		return 1 - m.o.Lambda, m.o.Lambda
	}
	return 1, 0
}

// goalValue returns the goal's value.
func (m *problem) goalValue(mean, worst float64) float64 {
	a, b := m.goal()
	return a*mean + b*worst
}
