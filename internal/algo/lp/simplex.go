package lp

import (
	"math"
	"slices"
)

// Status is how a solve ended.
type Status uint8

const (
	// Optimal means that no column can improve the solution.
	Optimal Status = iota
	// Limited means that the allowed pivots are used up. The solution is feasible, but its dual prices prove nothing.
	Limited
	// Unbounded means that the objective has no maximum: a column can grow without limit.
	Unbounded
)

// String names the status.
func (s Status) String() string { return [...]string{"optimal", "limited", "unbounded"}[s] }

// Solve finds an optimum. It starts from the basis of the last solve if that is still feasible, else from the slacks.
// It takes at most so many pivots; 0 means a number that only a broken program exceeds.
//
// It is the revised simplex method with bounds on columns (Chvátal, Linear Programming, 1983, ch. 7 and 8) with an
// explicit inverse. The column with the largest reduced cost enters (Dantzig); limits are perturbed, so that a step of
// length 0 does not occur and the method ends.
func (p *Program) Solve(pivots int) Status {
	if pivots <= 0 {
		pivots = 50 * (len(p.limits) + len(p.cost) + 10)
	}
	if !p.ready || !p.resume() {
		p.start()
	}
	status := Limited
	p.price()
	for range pivots {
		j := p.entering()
		if j < 0 && p.updated {
			p.price() // no rounding decides that this is the optimum
			j = p.entering()
		}
		if j < 0 {
			status = Optimal
			break
		}
		if !p.step(j) {
			status = Unbounded
			break
		}
		if p.pivots >= max(refactorAfter, len(p.limits)/4) {
			p.refactor()
			p.price()
		}
	}
	if p.updated {
		p.price()
	}
	p.removePerturbation()
	return status
}

// start takes the slacks as the basis.
func (p *Program) start() {
	m := len(p.limits)
	if cap(p.basis) < m {
		p.basis = make([]int32, m)
	}
	p.basis = p.basis[:m]
	p.inverse = zeroed(p.inverse, m*m)
	p.values, p.prices, p.direction = zeroed(p.values, m), zeroed(p.prices, m), zeroed(p.direction, m)
	p.shifted, p.ratios = zeroed(p.shifted, m), zeroed(p.ratios, m)
	p.perturb()
	for r := range m {
		p.basis[r] = int32(-1 - r)
		p.inverse[r*m+r] = 1
		p.values[r] = p.shifted[r]
	}
	clear(p.at)
	p.pivots, p.ready = 0, true
}

// price computes the prices of the rows: the costs of the basis times its inverse.
func (p *Program) price() {
	m := len(p.limits)
	clear(p.prices)
	for r, b := range p.basis {
		if b < 0 || p.cost[b] == 0 {
			continue
		}
		c, row := p.cost[b], p.inverse[r*m:][:m]
		for k, v := range row {
			p.prices[k] += c * v
		}
	}
	p.updated = false
}

// manyRows is from how many rows on prices are brought up to date after a pivot, which takes a pass over one row of the
// inverse in place of all of it. With fewer rows they are computed anew.
const manyRows = 256

// reprice brings the prices up to date after a column with some reduced cost has taken row r.
func (p *Program) reprice(r int, reduced float64) {
	m := len(p.limits)
	if m < manyRows {
		p.price()
		return
	}
	for k, v := range p.inverse[r*m:][:m] {
		p.prices[k] += reduced * v
	}
	p.updated = true
}

// reduced is the reduced cost of a column; slacks are numbered behind the columns.
func (p *Program) reduced(j int) float64 {
	if n := len(p.cost); j >= n {
		return -p.prices[j-n]
	}
	d := p.cost[j]
	rows := p.rows[p.starts[j]:p.starts[j+1]]
	coefs := p.coefs[p.starts[j]:][:len(rows)]
	for k, r := range rows {
		d -= p.prices[r] * coefs[k]
	}
	return d
}

// entering returns the column that improves the objective most for each unit of it; slacks are numbered behind the
// columns. It returns -1 where none improves.
func (p *Program) entering() (column int) {
	best, column := optimalityTolerance, -1
	upper, cost, starts := p.upper[:len(p.at)], p.cost[:len(p.at)], p.starts[:len(p.at)+1]
	rows, coefs, prices := p.rows, p.coefs[:len(p.rows)], p.prices
	for j, at := range p.at {
		if at == basic || upper[j] <= 0 {
			continue
		}
		gain := cost[j] // the reduced cost
		for k := starts[j]; k < starts[j+1]; k++ {
			gain -= prices[rows[k]] * coefs[k]
		}
		if at == atUpper {
			gain = -gain
		}
		if gain > best {
			best, column = gain, j
		}
	}
	// A slack enters where its row has a negative price.
	for r, y := range p.prices {
		if -y > best {
			best, column = -y, len(p.cost)+r
		}
	}
	return column
}

// step lets column j enter the basis, or go from one of its bounds to the other; slacks are numbered behind the
// columns. It returns false if nothing limits the column.
func (p *Program) step(j int) bool {
	up, limit := p.setDirection(j)
	leaves, theta := p.leaving(up, limit)
	if math.IsInf(theta, 1) {
		return false
	}
	for r, v := range p.direction {
		p.values[r] -= theta * up * v
	}
	if leaves < 0 { // from one bound to the other
		if p.at[j] == atUpper {
			p.at[j] = atLower
		} else {
			p.at[j] = atUpper
		}
		return true
	}
	reduced := p.reduced(j)
	p.exchange(j, leaves, up, theta)
	p.pivot(leaves)
	p.reprice(leaves, reduced)
	return true
}

// setDirection computes the entering column in terms of the basis. up is 1 when the column grows and -1 when it falls;
// limit is the distance between its bounds.
func (p *Program) setDirection(j int) (up, limit float64) {
	m, n := len(p.limits), len(p.cost)
	w := p.direction
	clear(w)
	if j >= n {
		for r := range m {
			w[r] = p.inverse[r*m+j-n]
		}
		return 1, math.Inf(1)
	}
	for k := p.starts[j]; k < p.starts[j+1]; k++ {
		c, col := p.coefs[k], int(p.rows[k])
		for r := range m {
			w[r] += c * p.inverse[r*m+col]
		}
	}
	if p.at[j] == atUpper {
		return -1, p.upper[j]
	}
	return 1, p.upper[j]
}

// leaving returns the row that limits the entering column first, and how far the column goes: Harris's ratio test. Of
// rows within rounding of each other it takes the one with the largest pivot. The row is -1 when the column reaches its
// other bound first; theta is +Inf when nothing limits it.
func (p *Program) leaving(up, limit float64) (leaves int, theta float64) {
	theta = limit
	for r, v := range p.direction {
		p.ratios[r] = p.ratio(r, up*v)
		if x := p.ratios[r]; !math.IsInf(x, 1) {
			theta = min(theta, max(x, 0)+harrisTolerance/math.Abs(v)*1e-3)
		}
	}
	if math.IsInf(theta, 1) {
		return -1, theta
	}
	leaves, size := -1, pivotTolerance
	for r, v := range p.direction {
		if math.Abs(v) > size && p.ratios[r] <= theta {
			leaves, size = r, math.Abs(v)
		}
	}
	if leaves < 0 {
		return -1, limit
	}
	theta = max(min(p.ratios[leaves], limit), 0)
	if theta >= limit {
		return -1, theta
	}
	return leaves, theta
}

// exchange takes the basic variable of row leaves out of the basis and puts column j, which has moved by theta, in its
// place.
func (p *Program) exchange(j, leaves int, up, theta float64) {
	if b := p.basis[leaves]; b >= 0 {
		if p.at[b] = atLower; up*p.direction[leaves] < 0 {
			p.at[b] = atUpper
		}
	}
	value := theta
	if n := len(p.cost); j >= n {
		p.basis[leaves] = int32(-1 - (j - n))
	} else {
		if p.at[j] == atUpper {
			value = p.upper[j] - theta
		}
		p.at[j], p.basis[leaves] = basic, int32(j)
	}
	p.values[leaves] = value
}

// harrisTolerance is the amount by which Harris's first pass lets a basic variable pass its bound.
const harrisTolerance = 1e-9

// ratio returns how far the entering column can go until the basic variable of row r reaches a bound, if it falls by v
// for each unit.
func (p *Program) ratio(r int, v float64) float64 {
	switch b := p.basis[r]; {
	case v > pivotTolerance:
		return p.values[r] / v
	case v < -pivotTolerance && b >= 0 && !math.IsInf(p.upper[b], 1):
		return (p.values[r] - p.upper[b]) / v
	}
	return math.Inf(1)
}

// pivot brings the inverse up to date after the entering column has taken row r.
func (p *Program) pivot(r int) {
	m := len(p.limits)
	row := p.inverse[r*m:][:m]
	f := 1 / p.direction[r]
	for k := range row {
		row[k] *= f
	}
	used := p.nonzeros(row)
	for i := range m {
		if v := p.direction[i]; i != r && v != 0 {
			subtract(p.inverse[i*m:][:m], row, v, used)
		}
	}
	p.pivots++
}

// nonzeros returns where a row is not 0; nil where it is dense enough to be passed over whole.
func (p *Program) nonzeros(row []float64) []int32 {
	p.used = p.used[:0]
	for k, x := range row {
		if x != 0 {
			p.used = append(p.used, int32(k))
		}
	}
	if len(p.used)*sparse > len(row) {
		return nil
	}
	return p.used
}

// sparse is how many times cheaper an element is in a pass over all than in one over those that are not 0.
const sparse = 3

// subtract takes a multiple of a row from another one. used are the places where the row is not 0, or nil.
func subtract(to, row []float64, v float64, used []int32) {
	if used == nil {
		for k, x := range row {
			to[k] -= v * x
		}
		return
	}
	for _, k := range used {
		to[k] -= v * row[k]
	}
}

// removePerturbation computes the values for the true limits. Prices do not depend on limits.
func (p *Program) removePerturbation() { p.compute(p.limits) }

// compute sets the values of the basis for limits b.
func (p *Program) compute(b []float64) {
	m := len(p.limits)
	left := p.direction
	copy(left, b)
	for j, at := range p.at {
		if at == atUpper {
			for k := p.starts[j]; k < p.starts[j+1]; k++ {
				left[p.rows[k]] -= p.coefs[k] * p.upper[j]
			}
		}
	}
	for r := range m {
		sum := 0.0
		for k, x := range p.inverse[r*m:][:m] {
			sum += x * left[k]
		}
		p.values[r] = sum
	}
}

// resume perturbs the limits before a solve continues from a basis. It returns false if limits have changed such that
// the basis is not feasible any more.
func (p *Program) resume() bool {
	p.perturb()
	p.compute(p.shifted)
	for r, b := range p.basis {
		if p.values[r] < 0 || b >= 0 && p.values[r] > p.upper[b] {
			return false
		}
	}
	return true
}

// perturb perturbs the limits. Multiples of the golden ratio, modulo 1, are all different and spread evenly.
func (p *Program) perturb() {
	for r, b := range p.limits {
		_, part := math.Modf(float64(r+1) * math.Phi)
		p.shifted[r] = b + perturbation*(1+b)*(0.5+part)
	}
}

// refactor computes the inverse of the basis anew, by Gauss-Jordan elimination with row pivoting. If rounding errors
// have made the basis singular, the solve starts again from the slacks.
func (p *Program) refactor() {
	m := len(p.limits)
	p.fresh = zeroed(p.fresh, 2*m*m)
	a, inv := p.fresh[:m*m], p.fresh[m*m:]
	for r, b := range p.basis {
		inv[r*m+r] = 1
		if b < 0 {
			a[int(-1-b)*m+r] = 1
			continue
		}
		for k := p.starts[b]; k < p.starts[b+1]; k++ {
			a[int(p.rows[k])*m+r] = p.coefs[k]
		}
	}
	for c := range m {
		best := c
		for r := c + 1; r < m; r++ {
			if math.Abs(a[r*m+c]) > math.Abs(a[best*m+c]) {
				best = r
			}
		}
		if math.Abs(a[best*m+c]) < 1e-12 {
			p.start()
			return
		}
		if best != c {
			for k := range m {
				a[best*m+k], a[c*m+k] = a[c*m+k], a[best*m+k]
				inv[best*m+k], inv[c*m+k] = inv[c*m+k], inv[best*m+k]
			}
		}
		f := 1 / a[c*m+c]
		for k := range m {
			a[c*m+k] *= f
			inv[c*m+k] *= f
		}
		rowA, rowInv := a[c*m:][:m], inv[c*m:][:m]
		usedA := slices.Clone(p.nonzeros(rowA))
		usedInv := p.nonzeros(rowInv)
		for r := range m {
			if v := a[r*m+c]; r != c && v != 0 {
				subtract(a[r*m:][:m], rowA, v, usedA)
				subtract(inv[r*m:][:m], rowInv, v, usedInv)
			}
		}
	}
	copy(p.inverse, inv)
	p.pivots = 0
	p.compute(p.shifted)
}
