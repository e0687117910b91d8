package bound

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/serving"
)

// Rent is the service that Cost must buy, and the machines that it may rent.
type Rent struct {
	// Late is the share of the queries of every app that need not be in time. LateOf is the same by app; an app beyond
	// its end has Late.
	Late   float64
	LateOf []float64
	// Target is by app the mean accuracy that answers in time must have; 0, or an app beyond its end, asks for none.
	Target []float64
	// Rented is by device type whether machines are rented when needed, at a price in $/h. Machines of other types are
	// owned and cost nothing.
	Rented []bool
	// Price is by device type, in $/h; nil takes the specification's.
	Price []float64
}

// ErrTooLittle means that all machines together are not enough.
var ErrTooLittle = errors.New("bound: the machines cannot give that, at whatever price")

// Cost returns a lower bound on the cost of serving a load, in $/h averaged over its time, for every way to rent
// machines over time. The workers of the specification are the most machines of each type.
func Cost(ctx context.Context, solver milp.Solver, w Model, queries []Query, r Rent, o Options) (float64, error) {
	cost, _, err := CostOver(ctx, solver, w, queries, r, o)
	return cost, err
}

// CostOver is Cost with the time that it is averaged over: from the first arrival to the last deadline.
func CostOver(ctx context.Context, solver milp.Solver, w Model, queries []Query, r Rent, o Options) (cost float64,
	over time.Duration, err error) {
	p, err := fit(&w, queries, o, func(serving.AppID, float64) float64 { return 0 })
	if err != nil {
		return 0, 0, err
	}
	p.Maximize = false
	p.rent(&r)
	p.demand(&r, queries)
	s, err := solver.Solve(ctx, &p.Program, relaxed)
	if err != nil {
		return 0, 0, fmt.Errorf("bound: %w", err)
	}
	switch s.Status {
	case milp.Optimal:
		over = time.Duration(p.windows) * p.width
		return s.Objective / float64(p.windows), over, nil
	case milp.Infeasible:
		return 0, 0, ErrTooLittle
	}
	return 0, 0, fmt.Errorf("bound: the program of %d rows and %d columns is %v", len(p.Rows), len(p.Columns), s.Status)
}

// rent turns the machines of rented types into variables, window by window.
func (p *program) rent(r *Rent) {
	for k := range p.kinds {
		x := &p.kinds[k]
		if int(x.device) >= len(r.Rented) || !r.Rented[x.device] {
			continue
		}
		price := p.w.Spec.DeviceTypes[x.device].PricePerHour
		if int(x.device) < len(r.Price) {
			price = r.Price[x.device]
		}
		for w := range p.windows {
			seconds := p.width.Seconds()
			// In $/h, not $ a window: costs of 1e-5 would be as small as what the solver takes for zero.
			c := p.Column(milp.Column{Objective: price, Upper: x.machines})
			p.rented[k][w] = c
			for _, row := range p.time[k][w] {
				if row >= 0 {
					p.Rows[row].Upper = 0
					p.term(row, c, -seconds)
				}
			}
			if row := p.memory[k][w]; row >= 0 {
				p.Rows[row].Upper = 0
				p.term(row, c, -float64(p.w.Spec.DeviceTypes[x.device].MemoryBytes)/mebi)
			}
		}
	}
}

// demand adds the rows by which all queries of every app but a share are served, at its target.
func (p *program) demand(r *Rent, queries []Query) {
	offered := make([]float64, len(p.w.Spec.Apps))
	for i := range queries {
		offered[queries[i].App] += queries[i].count()
	}
	for a := range offered {
		if offered[a] == 0 {
			continue
		}
		target := 0.0
		if a < len(r.Target) {
			target = r.Target[a]
		}
		var served, right []milp.Term
		for c := range p.served {
			if int(p.classes[c].app) != a {
				continue
			}
			for _, s := range p.served[c] {
				if s.second {
					right = append(right, milp.Term{Column: s.column, Coef: s.accuracy})
					continue
				}
				served = append(served, milp.Term{Column: s.column, Coef: 1})
				right = append(right, milp.Term{Column: s.column, Coef: s.accuracy - target})
			}
		}
		late := r.Late
		if a < len(r.LateOf) {
			late = r.LateOf[a]
		}
		p.Row((1-late)*offered[a], milp.Inf, served...)
		if target > 0 {
			p.Row(0, milp.Inf, right...)
		}
	}
}
