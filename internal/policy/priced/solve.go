package priced

import "math"

// dual is the dual function of the program of prices, as sums over nodes and flows. A node is the work of one class of
// size at one stage. Entries are the ways to serve an item of a node, and a span is those of one group.
//
// The price of a group is found with all others fixed, one group after the other. Of a node it then matters only what
// the groups before it cost at their new prices and those behind it at their old ones. Both are kept as a blend, so a
// sweep over all groups looks at every entry a few times, however many groups share a node.
type dual struct {
	supply, price []float64 // by group
	nodes         []node
	spans         []span // by node, then by group
	entries       []entry
	flows         []flow
	terms         []term
	blur          float64 // as below
	parts         []part  // by group; those of this program once it is indexed
	indexed       bool
}

// part is what concerns a group: its spans, and the flows that need some of their nodes.
type part struct{ spans, flows []int32 }

type node struct {
	from, to int32 // spans
	blur     float64
	cost     float64 // of an item, at the present prices
	used     float64 // s of the group in question for an item
	before   blend   // of the groups that have their new price
	others   blend   // of all groups but the one in question
}

type span struct {
	node, group int32
	from, to    int32 // entries
	behind      blend // of the groups that follow, at their old prices
}

type entry struct {
	time float64 // s
	loss float64
}

// blend is some entries of a node: the least cost of them, and the sum of their weights, relative to one of that cost.
type blend struct{ least, sum float64 }

// none is the blend of no entries.
var none = blend{least: math.Inf(1)}

// with returns the blend of the entries of both.
func (x blend) with(y blend, blur float64) blend {
	if y.least < x.least {
		x, y = y, x
	}
	if z := (x.least - y.least) / blur; y.sum > 0 && z > nothing {
		x.sum += y.sum * weight(z)
	}
	return x
}

type flow struct {
	from, to      int32 // terms
	demand, value float64
	optional      bool // what is not served loses nothing that was promised
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
	d.nodes, d.spans, d.entries = d.nodes[:0], d.spans[:0], d.entries[:0]
	d.flows, d.terms, d.indexed = d.flows[:0], d.terms[:0], false
}

// addNode adds a node whose items are worth so much.
func (d *dual) addNode(value float64) {
	at := int32(len(d.spans))
	d.nodes = append(d.nodes, node{from: at, to: at, blur: d.blur * value})
}

// addEntry adds a way to serve an item of the last node. Entries must come in the order of their groups.
func (d *dual) addEntry(group int, time, loss float64) {
	x := &d.nodes[len(d.nodes)-1]
	if x.from == x.to || d.spans[x.to-1].group != int32(group) {
		at := int32(len(d.entries))
		d.spans = append(d.spans, span{node: int32(len(d.nodes) - 1), group: int32(group), from: at, to: at})
		x.to++
	}
	d.entries = append(d.entries, entry{time, loss})
	d.spans[x.to-1].to++
}

// addFlow adds a flow of so many tasks per second.
func (d *dual) addFlow(demand, value float64) {
	at := int32(len(d.terms))
	d.flows = append(d.flows, flow{from: at, to: at, demand: demand, value: value})
}

// addItems adds items of a node to those that a task of the last flow needs.
func (d *dual) addItems(node int, items float64) {
	d.terms = append(d.terms, term{int32(node), items})
	d.flows[len(d.flows)-1].to++
}

// index finds what concerns each group.
func (d *dual) index() {
	if d.indexed {
		return
	}
	d.indexed = true
	for len(d.parts) < len(d.price) {
		d.parts = append(d.parts, part{})
	}
	for g := range d.parts {
		d.parts[g].spans, d.parts[g].flows = d.parts[g].spans[:0], d.parts[g].flows[:0]
	}
	for k := range d.spans {
		x := &d.parts[d.spans[k].group]
		x.spans = append(x.spans, int32(k))
	}
	for f := range d.flows {
		for _, t := range d.terms[d.flows[f].from:d.flows[f].to] {
			n := &d.nodes[t.node]
			for k := n.from; k < n.to; k++ {
				x := &d.parts[d.spans[k].group]
				if n := len(x.flows); n == 0 || x.flows[n-1] != int32(f) {
					x.flows = append(x.flows, int32(f))
				}
			}
		}
	}
}

// solve moves the prices to the minimum. It starts from those that are set.
func (d *dual) solve() {
	d.index()
	if len(d.price) == 1 {
		d.lookBehind()
		d.price[0] = d.root(0)
		return
	}
	for range sweeps {
		moved := false
		d.lookBehind()
		for g := range d.price {
			was := d.price[g]
			d.price[g] = d.root(int32(g))
			d.leave(int32(g))
			moved = moved || math.Abs(d.price[g]-was) > settled*max(was, d.price[g])
		}
		if !moved {
			return
		}
	}
}

// lookBehind begins a sweep: no group has its new price.
func (d *dual) lookBehind() {
	for k := range d.nodes {
		d.nodes[k].before, d.nodes[k].others, d.nodes[k].used = none, none, 0
	}
	for k := len(d.spans) - 1; k >= 0; k-- {
		y := &d.spans[k]
		x := &d.nodes[y.node]
		y.behind = x.others
		x.others = x.others.with(d.blendOf(y, x.blur), x.blur)
		x.cost = x.others.least
	}
}

// blendOf sums a span up at its group's price.
func (d *dual) blendOf(x *span, blur float64) blend {
	price, list, out := d.price[x.group], d.entries[x.from:x.to], none
	for e := range list {
		out.least = min(out.least, list[e].loss+price*list[e].time)
	}
	for e := range list {
		if z := (out.least - list[e].loss - price*list[e].time) / blur; z > nothing {
			out.sum += weight(z)
		}
	}
	return out
}

// enter fixes the other groups' prices for each node of a group. It returns the highest price at which an entry of the
// group is worth its time.
func (d *dual) enter(g int32) (top float64) {
	for _, k := range d.parts[g].spans {
		y := &d.spans[k]
		x := &d.nodes[y.node]
		x.others = x.before.with(y.behind, x.blur)
		for _, e := range d.entries[y.from:y.to] {
			top = max(top, x.blur/d.blur/e.time)
		}
	}
	return top
}

// leave takes up a group's new price.
func (d *dual) leave(g int32) {
	for _, k := range d.parts[g].spans {
		y := &d.spans[k]
		x := &d.nodes[y.node]
		own := d.blendOf(y, x.blur)
		x.before = x.before.with(own, x.blur)
		x.cost, x.used = min(x.others.least, own.least), 0
	}
}

// root returns the price of a group at which its time is just used up, at the present prices of the others; 0 where
// some of it is left even then.
func (d *dual) root(g int32) float64 {
	top := d.enter(g)
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

// spare returns how much of a group's time is left at a price.
func (d *dual) spare(g int32, price float64) float64 {
	for _, k := range d.parts[g].spans {
		y := &d.spans[k]
		d.nodes[y.node].serve(d.entries[y.from:y.to], price)
	}
	left := d.supply[g]
	for _, k := range d.parts[g].flows {
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
func (x *node) serve(own []entry, price float64) {
	least := x.others.least
	for e := range own {
		least = min(least, own[e].loss+price*own[e].time)
	}
	sum, used := 0.0, 0.0
	if z := (least - x.others.least) / x.blur; x.others.sum > 0 && z > nothing {
		sum = x.others.sum * weight(z)
	}
	for e := range own {
		if z := (least - own[e].loss - price*own[e].time) / x.blur; z > -20 {
			w := weight(z)
			sum += w
			used += w * own[e].time
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
		if x.optional {
			continue
		}
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
