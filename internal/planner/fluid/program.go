package fluid

import (
	"math"

	"github.com/sluice-serving/sluice/internal/algo/lp"
	"github.com/sluice-serving/sluice/serving"
)

// site is machines of a kind that hold the same.
type site struct {
	kind  int
	count float64
	holds []bool // by option of the kind
	free  int64  // bytes of each machine
	// workers are the machines, where it is decided which; nil before
	workers []serving.WorkerID
}

const (
	// served is what serving a query is worth beside its accuracy, in accuracies of the app's best: S. An app has one
	// more for each further stage, since the losses of stages add up.
	served = 2
	// missed is what a query's loss beyond its app's target costs on top of the loss: P. Less than serving it brings.
	missed = 2
	// idle is what a machine second costs relative to a query a second, so that of equal solutions that takes the least
	// time.
	idle = 1e-6
)

// program is the linear program for given sites.
type program struct {
	lp.Program
	m      *problem
	short  []int // by AppID: column of t; -1 for an app without a target
	sites  []site
	first  []int   // by StageID: row of the stage's first class; -1 for none
	target []int   // by AppID: row; -1 for an app without a target
	most   []int   // by StageID: row of the most instances of its app; -1 for none
	unsure []int   // by StageID: row of the first of problem.unsure
	served [][]int // by AppID, class: column
	spent  []spent // columns of z
	column []int   // by index in spent
	rows   int
	x      []float64
	terms  []lp.Term
}

// spent is the time that a site spends on an option for a class.
type spent struct {
	site, option int
	rate         float64 // items/s of a machine
	perQuery     float64 // items
	gains        float64 // of second answers, in accuracies of the stage's best; 0 for first ones
}

// newProgram makes the program of the sites, with no demand. It keeps sites.
func (m *problem) newProgram(sites []site) *program { return m.programWith(sites, 0) }

// programWith is newProgram with so many more rows behind the others.
func (m *problem) programWith(sites []site, more int) *program {
	p := &program{m: m, sites: sites, first: make([]int, len(m.stages)), target: make([]int, len(m.apps)),
		most: make([]int, len(m.stages)), unsure: make([]int, len(m.stages))}
	rows := len(sites)
	for s := range m.stages {
		p.first[s] = -1
		if a := &m.apps[m.stages[s].app]; !a.closed && m.stages[s].fan > 0 {
			p.first[s] = rows
			rows += len(a.classes)
		}
	}
	for a := range m.apps {
		p.target[a] = -1
		if !m.apps[a].closed && m.apps[a].allowed < 1 {
			p.target[a] = rows
			rows++
		}
	}
	for s := range m.stages {
		if p.most[s] = -1; p.first[s] >= 0 && m.capped(serving.StageID(s)) {
			p.most[s] = rows
			rows++
		}
		p.unsure[s] = rows
		rows += len(m.unsure[s])
	}
	p.rows = rows
	p.Reset(rows + more)
	for s, row := range p.most {
		if row >= 0 {
			p.Limit(row, float64(m.apps[m.stages[s].app].most))
		}
	}
	for i := range sites {
		p.Limit(i, sites[i].count)
	}
	p.addServed()
	for i := range sites {
		for j := range sites[i].holds {
			if sites[i].holds[j] {
				p.addTime(i, j)
			}
		}
	}
	return p
}

// addServed adds the columns y and t.
func (p *program) addServed() {
	m := p.m
	p.served, p.short = make([][]int, len(m.apps)), make([]int, len(m.apps))
	for a := range m.apps {
		x := &m.apps[a]
		p.short[a] = -1
		if x.closed {
			continue
		}
		for c := range x.classes {
			var terms []lp.Term
			least := 0.0
			for _, s := range m.spec.Apps[a].Stages {
				if p.first[s] >= 0 {
					terms = append(terms, lp.Term{Row: p.first[s] + c, Coef: m.perQuery(s, c)})
					least += m.stages[s].least
				}
			}
			if p.target[a] >= 0 {
				terms = append(terms, lp.Term{Row: p.target[a], Coef: least - x.allowed})
			}
			p.served[a] = append(p.served[a], p.Add(m.queryValue(a)-x.weight*least, 0, terms...))
		}
		if p.target[a] >= 0 {
			p.short[a] = p.Add(-missed*x.weight, math.Inf(1), lp.Term{Row: p.target[a], Coef: -1})
		}
	}
}

// queryValue is what an answer with the best variants is worth: w (S + 1).
func (m *problem) queryValue(a int) float64 {
	return m.apps[a].weight * float64(served+len(m.spec.Apps[a].Stages))
}

// perQuery is the items of a query of a class at a stage.
func (m *problem) perQuery(s serving.StageID, c int) float64 {
	return m.stages[s].fan * m.apps[m.stages[s].app].classes[c].items
}

// addTime adds the columns z of an option at a site.
func (p *program) addTime(i, j int) {
	p.times(i, j, func(z spent, cost float64, terms []lp.Term) {
		p.spent = append(p.spent, z)
		p.column = append(p.column, p.Add(cost, math.Inf(1), terms...))
	})
}

// times calls do for the columns z of an option at a site. The terms hold until the next one.
func (p *program) times(i, j int, do func(z spent, cost float64, terms []lp.Term)) {
	o := &p.m.kinds[p.sites[i].kind].options[j]
	if o.rates == nil || p.first[o.stage] < 0 {
		return
	}
	a := p.m.stages[o.stage].app
	column := func(row int, rate, perQuery, loss, gains float64) {
		queries := rate / perQuery // per second of a machine
		done := queries
		if gains == 0 {
			done = -rate
		}
		p.terms = append(p.terms[:0], lp.Term{Row: i, Coef: 1}, lp.Term{Row: row, Coef: done})
		if p.target[a] >= 0 {
			p.terms = append(p.terms, lp.Term{Row: p.target[a], Coef: queries * loss})
		}
		if p.most[o.stage] >= 0 { // an instance has no more than its machine's time
			p.terms = append(p.terms, lp.Term{Row: p.most[o.stage], Coef: 1})
		}
		if gains == 0 {
			p.terms = p.firstAnswers(p.terms, o, row-p.first[o.stage])
		}
		do(spent{i, j, rate, perQuery, gains}, -p.m.apps[a].weight*queries*(loss+idle), p.terms)
	}
	for c, rate := range o.rates {
		if rate > 0 {
			column(p.first[o.stage]+c, rate, p.m.perQuery(o.stage, c), o.loss-p.m.stages[o.stage].least, 0)
		}
	}
	perQuery := p.m.stages[o.stage].fan * p.m.meanItems(a)
	p.secondAnswers(o, func(row int, rate, gains float64) { column(row, rate, perQuery, -gains, gains) })
}

// solve sets the demands, by AppID in queries/s, and solves the program. It returns the value relative to what serving
// everything with the best variants is worth.
func (p *program) solve(rates []float64) float64 {
	total := 0.0
	for a := range p.served {
		for c, y := range p.served[a] {
			p.Upper(y, rates[a]*p.m.apps[a].classes[c].share)
		}
		if p.served[a] != nil {
			total += p.m.queryValue(a) * rates[a]
		}
	}
	p.Solve(0)
	return p.Objective() / max(total, math.SmallestNonzeroFloat64)
}

// work is about how many operations the program takes: a step of the simplex method for each row, and in each a pass
// over the inverse and the columns.
func (p *program) work() float64 {
	rows := float64(p.rows)
	return rows * (rows*rows + 3*float64(len(p.spent)))
}

// gain is by how much a second of a machine of a site raises the objective if it runs an option that the site does not
// hold, at the prices of the last solution; 0 where it does not.
func (p *program) gain(i, j int) (best float64) {
	p.times(i, j, func(_ spent, cost float64, terms []lp.Term) { best = max(best, p.ReducedCost(cost, terms...)) })
	return best
}

// flows is a solution in terms of the problem.
type flows struct {
	served []float64   // by AppID, queries/s
	loss   []float64   // by AppID: mean over the queries served
	items  [][]float64 // by site, option: items/s
	time   [][]float64 // by site, option: machines
}

// flows reads the last solution.
func (p *program) flows() *flows {
	m := p.m
	p.x = p.Solution(p.x)
	f := &flows{
		served: make([]float64, len(m.apps)), loss: make([]float64, len(m.apps)),
		items: make([][]float64, len(p.sites)), time: make([][]float64, len(p.sites)),
	}
	for a := range p.served {
		for _, y := range p.served[a] {
			f.served[a] += p.x[y]
		}
	}
	for i := range p.sites {
		n := len(m.kinds[p.sites[i].kind].options)
		f.items[i], f.time[i] = make([]float64, n), make([]float64, n)
	}
	for n, z := range p.spent {
		o := &m.kinds[p.sites[z.site].kind].options[z.option]
		t := p.x[p.column[n]]
		f.time[z.site][z.option] += t
		f.items[z.site][z.option] += t * z.rate
		loss := o.loss
		if z.gains > 0 {
			loss = -z.gains
		}
		if a := m.stages[o.stage].app; f.served[a] > 0 {
			f.loss[a] += t * z.rate / z.perQuery * loss / f.served[a]
		}
	}
	return f
}

// multiple returns the largest multiple of the demands, by AppID in queries/s, that the sites carry, up to most.
func (m *problem) multiple(sites []site, rates []float64, most float64) float64 {
	return m.multipleWithin(sites, rates, most, math.Inf(1))
}

// multipleWithin is multiple with no more of the sites' rented machines than a budget in $/h pays.
func (m *problem) multipleWithin(sites []site, rates []float64, most, budget float64) float64 {
	more := 0
	if !math.IsInf(budget, 1) {
		more = 1
	}
	p := m.programWith(sites, more)
	if more > 0 {
		p.Limit(p.rows, budget)
		for i := range sites {
			if k := &m.kinds[sites[i].kind]; k.rented {
				p.Limit(i, 0)
				p.Add(0, sites[i].count, lp.Term{Row: i, Coef: -1}, lp.Term{Row: p.rows, Coef: k.price})
			}
		}
	}
	var terms []lp.Term
	for a := range p.served {
		for c, y := range p.served[a] {
			p.Upper(y, 0)
			for _, s := range m.spec.Apps[a].Stages {
				if p.first[s] >= 0 {
					n := m.perQuery(s, c) * m.apps[a].classes[c].share * rates[a]
					terms = append(terms, lp.Term{Row: p.first[s] + c, Coef: n})
				}
			}
		}
	}
	for n := range p.spent {
		p.Cost(p.column[n], 0)
	}
	for a := range p.target {
		if p.target[a] >= 0 {
			p.Limit(p.target[a], math.MaxFloat32)
		}
	}
	theta := p.Add(1, most, terms...)
	p.Solve(0)
	return p.Value(theta)
}
