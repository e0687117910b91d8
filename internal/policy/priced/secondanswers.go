package priced

import (
	"math"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Where the confidence of a variant's answers was measured (serving.Confidence), its answer need not be the last. A
// task with an answer is one of another kind: it has no worth of being in time, only what better answers add to the
// accuracy of the one that there is. While machine time is dearer than that, the answer is given. So the confidence
// from which on answers are final follows from the prices. And a variant whose unsure answers may be improved brings,
// beside its accuracy, what its queries are worth from then on. Confidences are of items: of a query of several each
// has a task, which is worth its part.

// first is a variant whose answers may be improved.
type first struct {
	variant  serving.VariantID
	accuracy float64
	from     int       // of its bins in stage.seconds
	bins     int       // how many
	short    []float64 // by class and step: what of it is lost where queries want an accuracy that it falls short of
	onward   []float64 // by class and step: what an answer of it is worth beside its accuracy, since it may be improved
	doubted  bool      // its confidences say nothing now
	begun    int       // items since stage.firstsAt
	queries  int       // tasks since then
	missing  int       // of those, for queries whose accuracy they may fall short of
	rate     float64   // items/s
	misses   float64   // of those
	arrive   float64   // tasks/s
}

// second is tasks that have an answer of about the same confidence.
type second struct {
	tables []table // by the class of the first answer
	bin    *serving.ConfidenceBin
	gains  float64 // by how much the best variant's answers are better, in parts of the best accuracy
	best   float64 // that accuracy
	part   float64 // what one is worth, in the mean, relative to one of a query of one item
	rate   float64 // that come, tasks/s
	waits  float64 // that wait
	short  bool    // the answer fell short of the accuracy that its query wants, and does not count
}

// noSecond stands for a task without an answer.
const noSecond = -1

// findSeconds takes up the confidences of a stage's variants.
func (x *stage) findSeconds(spec *serving.Spec) {
	s := &spec.Stages[x.id]
	before := x.firsts
	x.firsts, x.seconds, x.shorts = nil, nil, 0
	best := max(spec.BestOfStage(x.id), 1e-9)
	for k := range s.Confidences {
		c := &s.Confidences[k]
		y := first{
			variant: c.Variant, accuracy: spec.Variants[c.Variant].Accuracy, from: len(x.seconds), bins: len(c.Bins),
		}
		if k < len(before) && before[k].variant == c.Variant {
			y.rate, y.begun, y.arrive, y.queries = before[k].rate, before[k].begun, before[k].arrive, before[k].queries
			y.misses, y.missing = before[k].misses, before[k].missing
		}
		x.firsts = append(x.firsts, y)
		for b := range c.Bins {
			bin := &c.Bins[b]
			x.seconds = append(x.seconds, second{bin: bin, best: best, gains: bin.MostGain() / best, part: 1})
		}
	}
}

// addShorts adds the kinds of tasks whose answer fell short, once queries want an accuracy: of each confidence one
// without an answer.
func (x *stage) addShorts() {
	if x.floor == 0 || x.shorts > 0 {
		return
	}
	x.shorts = len(x.seconds)
	for _, y := range x.seconds {
		x.seconds = append(x.seconds, second{bin: y.bin, best: y.best, part: 1, short: true})
	}
}

// kindOf is of which of stage.seconds a task is; noSecond for none.
func (x *stage) kindOf(t *fleet.Task) int {
	switch {
	case t.Hint() > 0:
		return int(t.Hint()) - 1
	case t.Short() > 0 && x.shorts > 0:
		return x.shorts + int(t.Short()) - 1
	}
	return noSecond
}

// improves reports whether an option may serve tasks of a kind.
func (x *stage) improves(o *option, second int) bool {
	if second < 0 {
		return true
	}
	y := &x.seconds[second]
	if y.short {
		return o.quality*y.best >= x.floor && y.bin.Of(o.variant) > 0
	}
	return y.bin.Improves(o.variant)
}

// worthOf is what a task is worth at best accuracy, beside the answer that it has.
func (x *stage) worthOf(second int) float64 {
	if second < 0 || x.seconds[second].short {
		return x.value
	}
	return x.right * x.emphasis * x.seconds[second].gains
}

// lossOf is what a task loses by an option's accuracy. One with an answer has part of the worth of a query.
func (x *stage) lossOf(o *option, second int, part float64) float64 {
	if second < 0 {
		return x.loss(o)
	}
	y := &x.seconds[second]
	if y.short {
		return part * x.right * x.emphasis * (1 - y.bin.Of(o.variant)/y.best)
	}
	return part * x.right * x.emphasis * (y.gains - (y.bin.Of(o.variant)-y.bin.Accuracy)/y.best)
}

// firstOf returns what an option's answers are first ones of; nil where they are final.
func (x *stage) firstOf(o *option) *first {
	for k := range x.firsts {
		if y := &x.firsts[k]; y.variant == o.variant && !y.doubted && len(y.onward) > 0 {
			return y
		}
	}
	return nil
}

// worth is what an answer to a task of a class is worth beside its accuracy, at a step; 0 for a class that came since.
func (y *first) worth(c, step int) float64 {
	if at := c*(steps+1) + step; at < len(y.onward) {
		return y.onward[at]
	}
	return 0
}

// shortBy is how much less it is worth for a query that wants an accuracy which the answer may fall short of.
func (y *first) shortBy(c, step int) float64 {
	if at := c*(steps+1) + step; at < len(y.short) {
		return y.short[at]
	}
	return 0
}

// findOnward computes what first answers are worth beside their accuracy, from what tasks that have one are worth, and
// what is lost of it where those that fall short of what queries want do not count.
func (x *stage) findOnward(a *app) {
	wait := int(math.Ceil(x.delta / a.slo * steps))
	for k := range x.firsts {
		y := &x.firsts[k]
		y.onward, y.short = sized(y.onward, len(x.classes)*(steps+1)), sized(y.short, len(x.classes)*(steps+1))
		for c := range x.classes {
			at := c * (steps + 1)
			for j := range steps + 1 {
				y.onward[at+j], y.short[at+j] = 0, 0
				if !x.alone && x.classes[c].most > 1 {
					continue // items of a graph that run together have one answer
				}
				for b := y.from; b < y.from+y.bins; b++ {
					z := &x.seconds[b]
					then := max(j-wait, 0)
					of := max(z.tables[x.answered(c)].values[then]-(x.after[j]-x.after[then]), 0)
					y.onward[at+j] += x.classes[c].mean * z.bin.Share * of
					if x.shorts > 0 && z.bin.Accuracy < x.floor && y.accuracy < x.floor {
						again := max(x.seconds[x.shorts+b].tables[x.answered(c)].values[then], 0)
						counted := x.after[j] - x.right*x.emphasis*(1-z.bin.Accuracy/z.best)
						y.short[at+j] += z.bin.Share * (counted + of - again)
					}
				}
			}
		}
	}
}

// usualOnward is what the answers to tasks of a class are worth beside their accuracy where a batch takes so many
// seconds and ends when its stage should.
func (x *stage) usualOnward(a *app, o *option, c, second int, t float64) float64 {
	if first, j := x.firstOf(o), a.step(x.remains-t-x.delta); second < 0 && first != nil && j >= 0 {
		return first.worth(c, j) - x.wants*first.shortBy(c, j)
	}
	return 0
}

// reward is what is left of the value of a task of a class when it is served, as a first answer of some or a final one,
// by a batch that takes t of the so many seconds that its query has. A second answer holds its query up meanwhile, so
// that the stages that follow bring less.
func (x *stage) reward(a *app, first *first, c, second int, part, due, t float64) float64 {
	if second >= 0 && !x.seconds[second].short {
		return part * (x.worthOf(second) - x.heldUp(a, second, due, due-t))
	}
	y := part * x.brings(a, due-t)
	if j := a.step(due - t); first != nil && j >= 0 {
		y += first.worth(c, j)
	}
	return y
}

// fallsShort is how much less a first answer to a task brings in a batch that takes so many seconds, since it may fall
// short of the accuracy that the query wants.
func (x *stage) fallsShort(a *app, first *first, y *task, t float64) float64 {
	if j := a.step(y.due - t); first != nil && y.floor > first.accuracy && j >= 0 {
		return y.part * first.shortBy(y.class, j)
	}
	return 0
}

// leftFor is valueOf for tasks with an answer, too, that wait so many seconds first.
func (x *stage) leftFor(a *app, c, second int, due, wait, part, long float64) float64 {
	if second < 0 {
		return x.valueOf(a, c, due-wait, part, long)
	}
	if y, j := x.tableOf(second, part), a.step(due-wait); y != nil && j >= 0 {
		return max(y.at(j, 1, long)-x.heldUp(a, second, due, due-wait), 0)
	}
	return 0
}

// heldUp is what the stages that follow lose while a task that has an answer waits until its query has less time left.
func (x *stage) heldUp(a *app, second int, due, left float64) float64 {
	if x.seconds[second].short {
		return 0
	}
	return x.brings(a, due) - x.brings(a, left)
}

// answered is the table of items of a class that have an answer. In graphs those are tasks of one item.
func (x *stage) answered(c int) int {
	if x.alone {
		return c
	}
	return 0
}

// partOf is the part of the worth of a task of a class that an item of it with an answer has; 1 for one without.
func (x *stage) partOf(c, second int) float64 {
	if second >= 0 && x.alone {
		return 1 / x.classes[c].mean
	}
	return 1
}

// tableOf returns what tasks with an answer and part of the worth of a query are worth; nil where that is not known.
func (x *stage) tableOf(second int, part float64) *table {
	c := x.answered(x.classOf(int(math.Round(1 / part))))
	if second < len(x.seconds) && c < len(x.seconds[second].tables) {
		return &x.seconds[second].tables[c]
	}
	return nil
}

const (
	// fewWant is the part of the share of queries that want an accuracy which one query changes.
	fewWant = 0.02
	// marginal is the part of what a better answer is worth by which its time may be dearer, so that some wait for it
	// all the same, mostMarginal how many of a stage do.
	marginal, mostMarginal = 0.1, 8
)

// settle gives the answers of which no better one is worth its time. Where those of one confidence are worth their time
// just about, there is time for some of them and none for the others: a few wait, so that no machine idles.
func (r *Rule) settle(v *route.View) {
	for s := range r.stages {
		x := &r.stages[s]
		q := v.Fleet.Central(x.id)
		if len(x.seconds) == 0 || q.Unconstrained() {
			continue
		}
		if r.prices.outdated {
			r.updatePrices(v)
		}
		some := 0
		for ref, n := q.Head(), 0; ref != fleet.Nil && n < mostTasks; n++ {
			own, t := ref, v.Fleet.Task(ref)
			ref = v.Fleet.Next(ref)
			if t.Hint() == 0 {
				continue
			}
			value, part := math.Inf(-1), 1/float64(t.Of())
			a := &r.apps[x.app]
			k, j := int(t.Hint())-1, a.step(t.Due().Sub(v.Now).Seconds())
			if y := x.tableOf(k, part); y != nil && j >= 0 {
				value = y.values[j]
				if wait := a.step(x.delta); len(x.next) > 0 {
					then := max(j-wait, 0)
					value = y.values[then] - (x.after[j] - x.after[then])
				}
			}
			switch {
			case value > 0:
			case value > -marginal*part*x.worthOf(k) && some < mostMarginal:
				some++
			default:
				v.Settle(own)
			}
		}
	}
}

// began counts the first answers that a batch will bring.
func (x *stage) began(b *batch) {
	for k := range x.firsts {
		y := &x.firsts[k]
		if y.variant != b.option.variant {
			continue
		}
		y.begun += b.items
		y.queries += b.n
		for _, j := range b.list {
			switch z := &x.differing[j]; {
			case z.second >= 0 || !x.alone && z.items > 1:
				y.begun -= z.items
				y.queries--
			case z.floor > y.accuracy:
				y.missing++
			}
		}
	}
	for _, j := range b.list {
		switch z := &x.differing[j]; {
		case z.second >= 0:
		case z.floor > 0:
			x.wants += fewWant * (1 - x.wants)
		default:
			x.wants -= fewWant * x.wants
		}
	}
	if len(b.list) == 0 {
		x.wants -= min(fewWant*float64(b.n), 1) * x.wants
	}
}

// followFirsts brings up to date how many tasks with an answer come, by their confidence.
func (x *stage) followFirsts(f *fleet.View, now serving.Time) {
	for k := range x.firsts {
		x.firsts[k].doubted = f.Doubts(x.firsts[k].variant)
	}
	took := now.Sub(x.firstsAt).Seconds()
	if len(x.firsts) == 0 || took <= 0 {
		return
	}
	x.firstsAt = now
	fresh := 1 - math.Exp(-took/rateWindow.Seconds())
	for k := range x.firsts {
		y := &x.firsts[k]
		y.rate += (float64(y.begun)/took - y.rate) * fresh
		y.arrive += (float64(y.queries)/took - y.arrive) * fresh
		y.misses += (float64(y.missing)/took - y.misses) * fresh
		y.begun, y.queries, y.missing = 0, 0, 0
		for b := y.from; b < y.from+y.bins; b++ {
			short := 0.0
			if x.shorts > 0 && x.seconds[b].bin.Accuracy < x.floor {
				short = y.misses * x.seconds[b].bin.Share
				x.seconds[x.shorts+b].rate = short
			}
			x.seconds[b].rate = y.rate*x.seconds[b].bin.Share - short
			if y.rate > 0 {
				x.seconds[b].part = y.arrive / y.rate
			}
		}
	}
}

// addSecondNodes adds the ways to improve the answers of a stage to the program of prices, behind its classes.
func (r *Rule) addSecondNodes(x *stage) {
	x.addShorts()
	for k := range x.seconds {
		part := x.seconds[k].part
		r.addWays(x, 0, k, max(part*x.worthOf(k), tolerance), 1, part)
	}
}

// addSecondFlows adds the tasks with an answer that come and wait.
func (r *Rule) addSecondFlows(x *stage, span float64) {
	p := &r.prices.dual
	for k := range x.seconds {
		y := &x.seconds[k]
		if d := y.rate + y.waits/span; d > 0 && (y.gains > 0 || y.short) {
			p.addFlow(d, y.part*x.worthOf(k))
			p.flows[len(p.flows)-1].optional = !y.short
			p.addItems(r.prices.nodes[x.id]+len(x.classes)+k, 1)
		}
	}
}
