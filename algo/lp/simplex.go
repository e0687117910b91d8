package lp

import "math"

// Status is how a solve ended.
type Status uint8

const (
	// Optimal means that no column can improve the solution.
	Optimal Status = iota
	// Limited means that the pivots allowed are used up. The solution is feasible, its prices prove nothing.
	Limited
	// Unbounded means that a column without an upper bound improves the objective for ever.
	Unbounded
)

// String names the status.
func (s Status) String() string { return [...]string{"optimal", "limited", "unbounded"}[s] }

// Solve finds an optimum from the basis that the last solve ended with, or from nothing where limits have changed. It
// takes at most so many pivots; 0 means enough for every program that is not broken.
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
	for range pivots {
		p.price()
		j := p.entering()
		if j < 0 {
			status = Optimal
			break
		}
		if !p.step(j) {
			status = Unbounded
			break
		}
		if p.pivots >= refresh {
			p.refactor()
		}
	}
	if status != Optimal {
		p.price()
	}
	p.settle()
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
	p.values, p.prices, p.enters = zeroed(p.values, m), zeroed(p.prices, m), zeroed(p.enters, m)
	p.shifted = zeroed(p.shifted, m)
	p.shift()
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
}

// entering returns the column that improves the objective most for each unit of it; slacks are numbered behind the
// columns. It returns -1 where none improves.
func (p *Program) entering() (column int) {
	best, column := optimal, -1
	for j, at := range p.at {
		if at == basic {
			continue
		}
		d := p.cost[j]
		for k := p.starts[j]; k < p.starts[j+1]; k++ {
			d -= p.prices[p.rows[k]] * p.coefs[k]
		}
		gain := d
		if at == atUpper {
			gain = -d
		}
		if gain > best && p.upper[j] > 0 {
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

// step lets a column enter the basis, or go from one of its bounds to the other; it returns false where nothing stops
// it.
func (p *Program) step(j int) bool {
	m, n := len(p.limits), len(p.cost)
	// The entering column in terms of the basis.
	w := p.enters
	clear(w)
	up := 1.0 // it grows
	limit := math.Inf(1)
	if j < n {
		for k := p.starts[j]; k < p.starts[j+1]; k++ {
			c, col := p.coefs[k], int(p.rows[k])
			for r := range m {
				w[r] += c * p.inverse[r*m+col]
			}
		}
		limit = p.upper[j]
		if p.at[j] == atUpper {
			up = -1
		}
	} else {
		for r := range m {
			w[r] = p.inverse[r*m+j-n]
		}
	}
	// The row that stops it first. Of rows that stop it within rounding of each other the largest pivot is taken
	// (Harris's ratio test).
	theta := limit
	for r := range m {
		if room := p.room(r, up*w[r]); room < theta {
			theta = room
		}
	}
	if math.IsInf(theta, 1) {
		return false
	}
	leaves, size := -1, pivotal
	for r := range m {
		v := up * w[r]
		if math.Abs(v) <= pivotal {
			continue
		}
		if p.exact(r, v) <= theta && math.Abs(v) > size {
			leaves, size = r, math.Abs(v)
		}
	}
	if leaves >= 0 {
		theta = max(min(p.exact(leaves, up*w[leaves]), limit), 0)
		if theta >= limit {
			leaves = -1
		}
	} else {
		theta = limit
	}
	for r := range m {
		p.values[r] -= theta * up * w[r]
	}
	if leaves < 0 { // from one bound to the other
		if p.at[j] == atUpper {
			p.at[j] = atLower
		} else {
			p.at[j] = atUpper
		}
		return true
	}
	if b := p.basis[leaves]; b >= 0 {
		if p.at[b] = atLower; up*w[leaves] < 0 {
			p.at[b] = atUpper
		}
	}
	value := theta
	if j < n {
		if p.at[j] == atUpper {
			value = p.upper[j] - theta
		}
		p.at[j], p.basis[leaves] = basic, int32(j)
	} else {
		p.basis[leaves] = int32(-1 - (j - n))
	}
	p.values[leaves] = value
	p.pivot(leaves)
	return true
}

// slackening is how much further than exactly a row may be gone against, in Harris's first pass.
const slackening = 1e-9

// exact is how far the entering column can go until what is basic in row r reaches a bound, when that falls by v for
// each unit.
func (p *Program) exact(r int, v float64) float64 {
	switch b := p.basis[r]; {
	case v > pivotal:
		return p.values[r] / v
	case v < -pivotal && b >= 0 && !math.IsInf(p.upper[b], 1):
		return (p.values[r] - p.upper[b]) / v
	}
	return math.Inf(1)
}

// room is exact with a tolerance.
func (p *Program) room(r int, v float64) float64 {
	x := p.exact(r, v)
	if math.IsInf(x, 1) {
		return x
	}
	return max(x, 0) + slackening/math.Abs(v)*1e-3
}

// pivot brings the inverse up to date after the entering column has taken row r.
func (p *Program) pivot(r int) {
	m := len(p.limits)
	row := p.inverse[r*m:][:m]
	f := 1 / p.enters[r]
	for k := range row {
		row[k] *= f
	}
	for i := range m {
		v := p.enters[i]
		if i == r || v == 0 {
			continue
		}
		to := p.inverse[i*m:][:m]
		for k, x := range row {
			to[k] -= v * x
		}
	}
	p.pivots++
}

// settle takes the perturbation out: prices do not depend on it, values do.
func (p *Program) settle() { p.compute(p.limits) }

// compute sets the values of the basis for limits b.
func (p *Program) compute(b []float64) {
	m := len(p.limits)
	rest := p.enters
	copy(rest, b)
	for j, at := range p.at {
		if at == atUpper {
			for k := p.starts[j]; k < p.starts[j+1]; k++ {
				rest[p.rows[k]] -= p.coefs[k] * p.upper[j]
			}
		}
	}
	for r := range m {
		sum := 0.0
		for k, x := range p.inverse[r*m:][:m] {
			sum += x * rest[k]
		}
		p.values[r] = sum
	}
}

// resume puts the perturbation back before a solve goes on from a basis. It returns false where limits have changed so
// that the basis is no solution any more.
func (p *Program) resume() bool {
	p.shift()
	p.compute(p.shifted)
	for r, b := range p.basis {
		if p.values[r] < 0 || b >= 0 && p.values[r] > p.upper[b] {
			return false
		}
	}
	return true
}

// shift perturbs the limits. Multiples of the golden ratio, modulo 1, are all different and spread evenly.
func (p *Program) shift() {
	for r, b := range p.limits {
		_, part := math.Modf(float64(r+1) * math.Phi)
		p.shifted[r] = b + shift*(1+b)*(0.5+part)
	}
}

// refactor computes the inverse of the basis afresh, by Gauss-Jordan elimination with row pivoting. A basis that has
// become singular by rounding is given up: the solve starts again from the slacks.
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
		for r := range m {
			v := a[r*m+c]
			if r == c || v == 0 {
				continue
			}
			for k := range m {
				a[r*m+k] -= v * a[c*m+k]
				inv[r*m+k] -= v * inv[c*m+k]
			}
		}
	}
	copy(p.inverse, inv)
	p.pivots = 0
	p.compute(p.shifted)
}
