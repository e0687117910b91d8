package kairos

import (
	"errors"
	"fmt"
	"math"
)

// Pool is how many machines of each type of a market are rented, by index in Market.Types.
type Pool []int

// SubsetOf reports whether p is a sub-configuration of q (§5.2): q has at least as many machines of every type.
func (p Pool) SubsetOf(q Pool) bool {
	for t, n := range p {
		if n > q[t] {
			return false
		}
	}
	return true
}

// Machines returns the number of machines of a pool.
func (p Pool) Machines() (n int) {
	for _, k := range p {
		n += k
	}
	return n
}

// maxPools bounds the number of pools that are listed. With more pools ranking takes seconds and hundreds of megabytes.
const maxPools = 2_000_000

// rounding forgives the error of sums of prices in floating point: five machines of 0.5 $/h cost 2.5 $/h.
const rounding = 1e-9

// ErrUnbounded says that neither the budget nor a limit bounds how many machines can be rented.
var ErrUnbounded = errors.New("neither a budget nor a limit bounds how many machines can be rented")

// Pools returns all pools of at least one machine that cost at most budget, in $/h, in lexicographic order. A budget of
// 0 sets no limit; then the limits of the types bound the pools. Machines that serve no size in time are not rented. It
// fails with ErrUnbounded, or when there are more than two million pools. The pools belong to the caller.
func (m *Market) Pools(budget float64) ([]Pool, error) {
	if !(budget >= 0) || math.IsInf(budget, 0) {
		return nil, fmt.Errorf("the budget is %v $/h, want a finite number of at least 0, which is no limit", budget)
	}
	left := budget * (1 + rounding)
	if budget == 0 {
		left = math.Inf(1)
	}
	most, err := m.limits(left)
	if err != nil {
		return nil, err
	}
	list := poolList{market: m, most: most, at: make(Pool, len(m.Types))}
	if !list.add(0, left) {
		return nil, fmt.Errorf("more than %d pools cost at most %v $/h: lower the budget, or say how many machines "+
			"of a type there are at most", maxPools, budget)
	}
	return list.pools, nil
}

// limits returns by type the most machines that a pool for so much money, in $/h, can have.
func (m *Market) limits(money float64) (Pool, error) {
	most := make(Pool, len(m.Types))
	for t := range m.Types {
		if !m.Useful(t) {
			continue
		}
		x := &m.Types[t]
		most[t] = x.Max
		if x.Price > 0 && !math.IsInf(money, 1) {
			fits := int(min(money/x.Price, maxPools))
			if most[t] == 0 || most[t] > fits {
				most[t] = fits
			}
		} else if most[t] == 0 {
			return nil, fmt.Errorf("%q at %v $/h: %w: set a budget and a price, or how many there are at most", x.Name,
				x.Price, ErrUnbounded)
		}
	}
	return most, nil
}

// poolList enumerates pools.
type poolList struct {
	market *Market
	most   Pool
	at     Pool // the pool being made
	pools  []Pool
	block  []int // memory that pools are cut from: one allocation for many
}

// add adds all pools that agree with at on the types before t and cost at most money more. It returns false when there
// are more than maxPools.
func (l *poolList) add(t int, money float64) bool {
	if t == len(l.at) {
		return l.at.Machines() == 0 || l.keep()
	}
	price := l.market.Types[t].Price
	for n := 0; n <= l.most[t] && float64(n)*price <= money; n++ {
		l.at[t] = n
		if !l.add(t+1, money-float64(n)*price) {
			return false
		}
	}
	l.at[t] = 0
	return true
}

// keep adds a copy of at to the list. It returns false when the list is full.
func (l *poolList) keep() bool {
	if len(l.pools) == maxPools {
		return false
	}
	if len(l.block) < len(l.at) {
		l.block = make([]int, 1024*len(l.at))
	}
	p := Pool(l.block[:len(l.at):len(l.at)])
	l.block = l.block[len(l.at):]
	copy(p, l.at)
	l.pools = append(l.pools, p)
	return true
}

// Cost returns the rent of a pool in $/h.
func (m *Market) Cost(p Pool) (cost float64) {
	for t, n := range p {
		cost += float64(n) * m.Types[t].Price
	}
	return cost
}
