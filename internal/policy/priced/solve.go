package priced

import "math"

// dual is the dual function of the program of prices, as sums over nodes and flows. A node is the work of one class of
// size at one stage. Entries are the ways to serve an item of a node.
type dual struct {
	supply, price []float64 // by group
	nodes         []node
	entries       []entry
	flows         []flow
	terms         []term
	blur          float64 // as below
}

type node struct {
	from, to int32 // entries; those of a group follow each other
	blur     float64
	cost     float64 // of an item, at the present prices
	used     float64 // s of the group in question for an item
	rest     float64 // sum of the weights of other groups' entries, relative to that of cost least
	least    float64 // the least cost of those
}

type entry struct {
	group int32
	time  float64 // s
	loss  float64
}

type flow struct {
	from, to      int32 // terms
	demand, value float64
}

type term struct {
	node  int32
	items float64
}

const (
	// blurAlone is blur where there is one group: no descent can stop short.
	blurAlone = 0.001
	// blur is over which difference in value, relative to that of a task, options of one item share it. blurFlow is the
	// same for flows that are worth about what they cost.
	blur, blurFlow = 0.005, 0.01
	// sweeps is how often all groups are looked at, where there are several; less where prices have settled.
	sweeps = 4
	// settled is the relative change of a price that counts as none.
	settled = 0.01
	// rootSteps bounds the search for a group's price.
	rootSteps = 14
	// nothing is the exponent from which on a weight changes no sum.
	nothing = -50
	// dear is a price at which no item is worth its time, relative to the price at which the fastest is not.
	dear = 1.5
)

func (d *dual) reset(groups int) {
	d.supply, d.price = sized(d.supply, groups), sized(d.price, groups)
	d.blur = blur
	if groups == 1 {
		d.blur = blurAlone
	}
	d.nodes, d.entries, d.flows, d.terms = d.nodes[:0], d.entries[:0], d.flows[:0], d.terms[:0]
}

// addNode adds a node whose items are worth so much.
func (d *dual) addNode(value float64) {
	at := int32(len(d.entries))
	d.nodes = append(d.nodes, node{from: at, to: at, blur: d.blur * value})
}

// addEntry adds a way to serve an item of the last node. Entries must come in the order of their groups.
func (d *dual) addEntry(group int, time, loss float64) {
	d.entries = append(d.entries, entry{int32(group), time, loss})
	d.nodes[len(d.nodes)-1].to++
}

// addFlow adds a flow of so many tasks per second.
func (d *dual) addFlow(demand, value float64) {
	at := int32(len(d.terms))
	d.flows = append(d.flows, flow{at, at, demand, value})
}

// addItems adds items of a node to those that a task of the last flow needs.
func (d *dual) addItems(node int, items float64) {
	d.terms = append(d.terms, term{int32(node), items})
	d.flows[len(d.flows)-1].to++
}

// solve moves the prices to the minimum. It starts from those that are set.
func (d *dual) solve() {
	n := sweeps
	if len(d.price) == 1 {
		n = 1
	}
	for range n {
		moved := false
		for g := range d.price {
			was := d.price[g]
			d.price[g] = d.root(int32(g))
			moved = moved || math.Abs(d.price[g]-was) > settled*max(was, d.price[g])
		}
		if !moved {
			return
		}
	}
}

// root returns the price of a group at which its time is just used up, at the present prices of the others; 0 where
// some of it is left even then.
func (d *dual) root(g int32) float64 {
	top := d.fixOthers(g)
	if top == 0 {
		return 0
	}
	low, high := 0.0, dear*top
	lowSpare, highSpare := d.spare(g, low), d.supply[g]
	if lowSpare >= 0 {
		return 0
	}
	if p := d.price[g]; p > 0 && p < high { // the last price is near
		for _, x := range [...]float64{p * 0.9, p * 1.1} {
			if s := d.spare(g, x); s < 0 {
				low, lowSpare = x, s
			} else {
				high, highSpare = x, s
				break
			}
		}
	}
	for range rootSteps {
		if high-low <= 0.1*settled*high {
			break
		}
		// Regula falsi, and halving where it moves slowly (Dowell and Jarratt 1971: Illinois).
		x := low + (high-low)*max(0.1, min(0.9, -lowSpare/(highSpare-lowSpare)))
		if s := d.spare(g, x); s < 0 {
			low, lowSpare = x, s
			highSpare /= 2
		} else {
			high, highSpare = x, s
			lowSpare /= 2
		}
	}
	return high
}

// fixOthers sums up, for each node, the entries of the other groups at their prices. It returns the highest price at
// which an entry of the group is worth its time.
func (d *dual) fixOthers(g int32) (top float64) {
	for k := range d.nodes {
		x := &d.nodes[k]
		x.rest, x.least = 0, math.Inf(1)
		for e := x.from; e < x.to; e++ {
			if y := &d.entries[e]; y.group != g {
				x.least = min(x.least, y.loss+d.price[y.group]*y.time)
			} else {
				top = max(top, x.blur/d.blur/y.time)
			}
		}
		for e := x.from; e < x.to; e++ {
			if y := &d.entries[e]; y.group != g {
				if z := (x.least - y.loss - d.price[y.group]*y.time) / x.blur; z > nothing {
					x.rest += weight(z)
				}
			}
		}
	}
	return top
}

// spare returns how much of a group's time is left at a price.
func (d *dual) spare(g int32, price float64) float64 {
	for k := range d.nodes {
		d.nodes[k].serve(d.entries, g, price)
	}
	left := d.supply[g]
	for k := range d.flows {
		x := &d.flows[k]
		surplus, takes := x.value, 0.0
		for e := x.from; e < x.to; e++ {
			y := &d.nodes[d.terms[e].node]
			surplus -= d.terms[e].items * y.cost
			takes += d.terms[e].items * y.used
		}
		if takes > 0 && surplus > -20*blurFlow*x.value {
			left -= x.demand * takes / (1 + math.Exp(-surplus/(blurFlow*x.value)))
		}
	}
	return left
}

// serve computes what an item of a node costs, and how much of a group's time it takes, at a price of the group.
func (x *node) serve(entries []entry, g int32, price float64) {
	least := x.least
	for e := x.from; e < x.to; e++ {
		if y := &entries[e]; y.group == g {
			least = min(least, y.loss+price*y.time)
		}
	}
	if math.IsInf(least, 1) {
		x.cost, x.used = least, 0
		return
	}
	sum, used := 0.0, 0.0
	if z := (least - x.least) / x.blur; x.rest > 0 && z > nothing {
		sum = x.rest * weight(z)
	}
	for e := x.from; e < x.to; e++ {
		y := &entries[e]
		if y.group != g {
			continue
		}
		if z := (least - y.loss - price*y.time) / x.blur; z > -20 {
			w := weight(z)
			sum += w
			used += w * y.time
		}
	}
	x.cost, x.used = least, used/sum
}

// weight is exp(z); most entries are the cheapest of their node.
func weight(z float64) float64 {
	if z == 0 {
		return 1
	}
	return math.Exp(z)
}

// shedShare is the part of a flow's value below which its surplus says that some of it is not served.
const shedShare = 5 * blurFlow

// sheds reports whether some flow is not served whole at the prices that were evaluated last.
func (d *dual) sheds() bool {
	for k := range d.flows {
		x := &d.flows[k]
		surplus := x.value
		for e := x.from; e < x.to; e++ {
			surplus -= d.terms[e].items * d.nodes[d.terms[e].node].cost
		}
		if surplus < shedShare*x.value {
			return true
		}
	}
	return false
}
