package fluid

import (
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/algo/lp"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// unsure is queries whose first answer, of some variant, a better variant may improve: those of some bins of its
// confidence. In the program they are a row: of the queries that the variant has answered a part is answered a second
// time, item by item. It is a row of queries, not of items, since an item of a large query adds less to its accuracy.
type unsure struct {
	first serving.VariantID
	share float64 // of what the variant answers
	bins  []serving.ConfidenceBin
}

// mostUnsure is into how many rows the bins of a variant are joined, of about equal gain. With as many as bins the
// program would have eleven rows for each variant, and its work grows with the square of them.
const mostUnsure = 4

// findUnsure joins the bins of the stages' variants.
func (m *problem) findUnsure() {
	m.unsure = make([][]unsure, len(m.stages))
	for s := range m.spec.Stages {
		a := m.stages[s].app
		together := m.spec.Source(a) == serving.StageID(s) && len(m.spec.Apps[a].Stages) > 1 && m.meanItems(a) > 1
		if !m.o.SecondAnswers || m.stages[s].fan == 0 || m.apps[a].closed || together {
			continue
		}
		for k := range m.spec.Stages[s].Confidences {
			c := &m.spec.Stages[s].Confidences[k]
			all := 0.0
			for b := range c.Bins {
				all += c.Bins[b].Share * c.Bins[b].MostGain()
			}
			now, done := unsure{first: c.Variant}, 0.0
			for b := range c.Bins {
				g := c.Bins[b].Share * c.Bins[b].MostGain()
				if g == 0 {
					continue
				}
				now.bins, now.share = append(now.bins, c.Bins[b]), now.share+c.Bins[b].Share
				if done += g; done >= all/mostUnsure || b == len(c.Bins)-1 {
					m.unsure[s] = append(m.unsure[s], now)
					now, done = unsure{first: c.Variant}, 0
				}
			}
			if now.share > 0 {
				m.unsure[s] = append(m.unsure[s], now)
			}
		}
	}
}

// gains is by how much the answers of a variant are better than the first ones: in accuracies of so much.
func (u *unsure) gains(v serving.VariantID, best float64) (sum float64) {
	for b := range u.bins {
		if y := &u.bins[b]; y.Improves(v) {
			sum += y.Share * (y.Of(v) - y.Accuracy)
		}
	}
	return sum / (u.share * best)
}

// findLeasts finds out by how much second answers may make the answers of a stage better than those of its best
// variant, which are no loss: a loss below 0. Losses count from there on. Else it would pay to answer more queries than
// come, for the sake of second answers to them.
func (m *problem) findLeasts() {
	for s := range m.unsure {
		best := m.spec.BestOfStage(serving.StageID(s))
		for k := range m.spec.Stages[s].Confidences {
			v := m.spec.Stages[s].Confidences[k].Variant
			loss := 1 - m.spec.Variants[v].Accuracy/best
			for n := range m.unsure[s] {
				if u := &m.unsure[s][n]; u.first == v {
					loss -= u.share * u.mostGain(m.spec.Stages[s].Variants, best)
				}
			}
			m.stages[s].least = min(m.stages[s].least, loss)
		}
	}
}

// mostGain is gains of the best of some variants.
func (u *unsure) mostGain(variants []serving.VariantID, best float64) (most float64) {
	for _, v := range variants {
		most = max(most, u.gains(v, best))
	}
	return most
}

// firstTakes is how much of its time a query needs for its first answer, in runs of one item: it waits for another one
// to end.
const firstTakes = 2

// findSecondRates fills in how many second answers an option gives in the time that first ones leave.
func (m *problem) findSecondRates(k *kind, o *option) {
	o.seconds = make([]float64, len(m.unsure[o.stage]))
	items := 1
	if app := &m.spec.Apps[m.stages[o.stage].app]; len(app.Stages) == 1 {
		items = int(math.Ceil(m.meanItems(m.stages[o.stage].app)))
	}
	for n := range o.seconds {
		u := &m.unsure[o.stage][n]
		first := profile.Unknown
		for d := range m.spec.DeviceTypes {
			first = min(first, m.believed.Latency(u.first, serving.DeviceTypeID(d), items, 1))
		}
		if left := m.stages[o.stage].within - firstTakes*first; left > 0 && u.gains(o.variant, 1) > 0 {
			o.seconds[n] = m.rateWithin(k, o, 1, left)
		}
	}
}

// firstAnswers appends what a column of an option's answers adds to the rows of those that may be improved.
func (p *program) firstAnswers(terms []lp.Term, o *option, c int) []lp.Term {
	for k := range p.m.unsure[o.stage] {
		if u := &p.m.unsure[o.stage][k]; u.first == o.variant {
			queries := o.rates[c] / p.m.perQuery(o.stage, c)
			terms = append(terms, lp.Term{Row: p.unsure[o.stage] + k, Coef: -u.share * queries})
		}
	}
	return terms
}

// secondAnswers calls do for the second answers that an option may give: the row of those that they improve, how many a
// second, and by how much each.
func (p *program) secondAnswers(o *option, do func(row int, rate, gains float64)) {
	for k := range p.m.unsure[o.stage] {
		if rate := o.seconds[k]; rate > 0 {
			do(p.unsure[o.stage]+k, rate, p.m.unsure[o.stage][k].gains(o.variant, p.m.spec.BestOfStage(o.stage)))
		}
	}
}

// secondBring says what second answers bring to what sites serve: it solves the program with and without them.
func (m *problem) secondBring(sites []site) *plan.SecondAnswers {
	if !slices.ContainsFunc(m.unsure, func(list []unsure) bool { return len(list) > 0 }) {
		return nil
	}
	p := m.newProgram(sites)
	if !slices.ContainsFunc(p.spent, func(z spent) bool { return z.gains > 0 }) {
		return nil
	}
	p.solve(m.demand())
	f := p.flows()
	out := &plan.SecondAnswers{Shares: make([]float64, len(m.apps)), Gains: make([]float64, len(m.apps))}
	for n, z := range p.spent {
		if z.gains == 0 {
			continue
		}
		stage := m.kinds[p.sites[z.site].kind].options[z.option].stage
		if a := m.stages[stage].app; f.served[a] > 0 {
			out.Shares[a] += p.x[p.column[n]] * z.rate / z.perQuery / f.served[a]
		}
		p.Upper(p.column[n], 0)
	}
	p.Solve(0)
	without := p.flows()
	for a := range out.Gains {
		out.Gains[a] = m.spec.BestAccuracy(serving.AppID(a)) * (without.loss[a] - f.loss[a])
	}
	if m.rents() {
		single := *m
		single.unsure = make([][]unsure, len(m.stages))
		_, with, all := m.newMarket(1).relaxed()
		if _, cost, full := single.newMarket(1).relaxed(); full && all {
			out.Saved = max(cost-with, 0)
		}
	}
	return out
}
