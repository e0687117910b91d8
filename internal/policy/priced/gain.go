package priced

import (
	"math"

	"github.com/sluice-serving/sluice/serving/fleet"
)

// tally is what the tasks of a batch come to, before what the batch costs. All is in queries that are in time at best
// accuracy.
type tally struct {
	n                int
	reward           float64 // what is left of the tasks' value when the batch ends
	left             float64 // their opportunity cost: what they are worth if they are left for later
	loss             float64 // what the option's accuracy falls short of the best, for all of them
	tightest, latest float64 // s that the task with least time has left, and that with most
}

// newTally returns a tally without tasks.
func newTally() tally { return tally{tightest: math.Inf(1)} }

// add counts one task more.
func (y *tally) add(reward, left, loss, seconds float64) {
	y.n, y.reward, y.left, y.loss = y.n+1, y.reward+reward, y.left+left, y.loss+loss
	y.tightest, y.latest = min(y.tightest, seconds), max(y.latest, seconds)
}

// way is how tasks of a stage could be served: by an option of a group's machines, at a price.
type way struct {
	stage  *stage
	app    *app
	option *option
	group  int
	price  float64 // the dual price of a second of a slot
	pace   *pace   // of the machines
}

func (r *Rule) way(x *stage, g int, o *option, price float64) way {
	return way{x, &r.apps[x.app], o, g, price, &r.machines.paces[r.machines.groups[g].device]}
}

// gain is what a batch brings, however it is formed:
//
//	reward   of its tasks
//	- left   their opportunity cost
//	- loss   what the option's accuracy falls short of the best, for each of them
//	- time   the opportunity cost of the machine: so many seconds of work at their dual price
//	- others what it takes from other tasks, which it blocks or delays
//	- late   the risk that it ends later than believed, and the reward with it
//
// It works for so many seconds of a slot, and is believed to end after so many. The risk counts for apps of one stage:
// what a stage of a graph may take is itself an estimate, and with this risk as well machines that are rented for
// graphs cost up to 15 % more for the same service.
func (w *way) gain(y *tally, works, ends, others float64) float64 {
	gain := y.reward - (y.left + y.loss + w.price*works + others)
	if w.app.graph.Len() == 1 {
		gain -= y.reward * w.pace.risk(y.tightest, y.latest, ends)
	}
	return gain
}

// typicalShare is the part of an objective that a batch is taken to last.
const typicalShare = 0.3

// score compares batches of different lengths. With exact prices the gain alone would say which is best, since the
// price is what the time is worth; under prices that are too low the gain for each second would. Prices are estimates:
// the mean of both is better than either, and for a batch of typical length it is the gain for each second. Where tasks
// are mixed prices say less: there it is that for all.
func (w *way) score(gain, works float64) float64 {
	if w.stage.mixed {
		return gain / works
	}
	return gain / math.Sqrt(works*(typicalShare*w.app.slo))
}

// batch is some tasks of a stage that could begin together.
type batch struct {
	option   *option
	n, items int     // tasks, 0 for no batch, and their items
	first    int     // position of the first of n that follow each other, of those that wait
	list     []int32 // their positions instead, where tasks are mixed
	gain     float64
	price    float64 // of a second of a slot
	blocks   float64 // what of gain other stages lose because no machine is free for them meanwhile
	score    float64
	takes    float64 // s, where tasks are mixed
}

// seconds is how long a batch takes, with so many items more.
func (b *batch) seconds(more int) float64 {
	if b.takes > 0 && more == 0 {
		return b.takes
	}
	return b.option.seconds[b.items+more]
}

// accepts reports whether an option may serve a task, whatever its size.
func (o *option) accepts(f *fleet.View, t *fleet.Task) bool {
	return (!o.pinned || t.Pin() == o.variant) && (!t.Constrained() || f.Accepts(t, o.variant))
}
