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
	variant serving.VariantID
	from    int       // of its bins in stage.seconds
	bins    int       // how many
	onward  []float64 // by class and step: what an answer of it is worth beside its accuracy, since it may be improved
	doubted bool      // its confidences say nothing now
	begun   int       // items since stage.firstsAt
	queries int       // tasks since then
	rate    float64   // items/s
	arrive  float64   // tasks/s
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
}

// noSecond stands for a task without an answer.
const noSecond = -1

// findSeconds takes up the confidences of a stage's variants.
func (x *stage) findSeconds(spec *serving.Spec) {
	s := &spec.Stages[x.id]
	before := x.firsts
	x.firsts, x.seconds = nil, nil
	best := max(spec.BestOfStage(x.id), 1e-9)
	for k := range s.Confidences {
		c := &s.Confidences[k]
		y := first{variant: c.Variant, from: len(x.seconds), bins: len(c.Bins)}
		if k < len(before) && before[k].variant == c.Variant {
			y.rate, y.begun, y.arrive, y.queries = before[k].rate, before[k].begun, before[k].arrive, before[k].queries
		}
		x.firsts = append(x.firsts, y)
		for b := range c.Bins {
			bin := &c.Bins[b]
			x.seconds = append(x.seconds, second{bin: bin, best: best, gains: bin.MostGain() / best, part: 1})
		}
	}
}

// improves reports whether an option may serve tasks of a kind.
func (x *stage) improves(o *option, second int) bool {
	return second < 0 || x.seconds[second].bin.Improves(o.variant)
}

// worthOf is what a task is worth at best accuracy, beside the answer that it has.
func (x *stage) worthOf(second int) float64 {
	if second < 0 {
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

// findOnward computes what first answers are worth beside their accuracy, from what tasks that have one are worth.
func (x *stage) findOnward(a *app) {
	wait := int(math.Ceil(x.delta / a.slo * steps))
	for k := range x.firsts {
		y := &x.firsts[k]
		y.onward = sized(y.onward, len(x.classes)*(steps+1))
		for c := range x.classes {
			own := y.onward[c*(steps+1):][:steps+1]
			for j := range own {
				own[j] = 0
				for b := y.from; b < y.from+y.bins; b++ {
					of := x.seconds[b].tables[c].values[max(j-wait, 0)]
					own[j] += x.classes[c].mean * x.seconds[b].bin.Share * max(of, 0)
				}
			}
		}
	}
}

// usualOnward is what the answers to tasks of a class are worth beside their accuracy where a batch takes so many
// seconds and ends when its stage should.
func (x *stage) usualOnward(a *app, o *option, c, second int, t float64) float64 {
	if first, j := x.firstOf(o), a.step(x.remains-t-x.delta); second < 0 && first != nil && j >= 0 {
		return first.worth(c, j)
	}
	return 0
}

// reward is what is left of the value of a task of a class when it is served, as a first answer of some or a final one,
// by a batch that takes t of the so many seconds that its query has. A second answer holds its query up meanwhile, so
// that the stages that follow bring less.
func (x *stage) reward(a *app, first *first, c, second int, part, due, t float64) float64 {
	if second >= 0 {
		return part * (x.worthOf(second) - x.brings(a, due) + x.brings(a, due-t))
	}
	y := part * x.brings(a, due-t)
	if j := a.step(due - t); first != nil && j >= 0 {
		y += first.worth(c, j)
	}
	return y
}

// leftFor is valueOf for tasks with an answer, too.
func (x *stage) leftFor(a *app, c, second int, left, part, long float64) float64 {
	if second < 0 {
		return x.valueOf(a, c, left, part, long)
	}
	if y, j := x.tableOf(second, part), a.step(left); y != nil && j >= 0 {
		return y.at(j, 1, long)
	}
	return 0
}

// tableOf returns what tasks with an answer and part of the worth of a query are worth; nil where that is not known.
func (x *stage) tableOf(second int, part float64) *table {
	if c := x.classOf(int(math.Round(1 / part))); second < len(x.seconds) && c < len(x.seconds[second].tables) {
		return &x.seconds[second].tables[c]
	}
	return nil
}

const (
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
			k, j := int(t.Hint())-1, r.apps[x.app].step(t.Due().Sub(v.Now).Seconds())
			if y := x.tableOf(k, part); y != nil && j >= 0 {
				value = y.values[j]
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
			if x.differing[j].second >= 0 {
				y.begun--
				y.queries--
			}
		}
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
		y.begun, y.queries = 0, 0
		for b := y.from; b < y.from+y.bins; b++ {
			x.seconds[b].rate = y.rate * x.seconds[b].bin.Share
			if y.rate > 0 {
				x.seconds[b].part = y.arrive / y.rate
			}
		}
	}
}

// addSecondNodes adds the ways to improve the answers of a stage to the program of prices, behind its classes.
func (r *Rule) addSecondNodes(x *stage) {
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
		if d := y.rate + y.waits/span; d > 0 && y.gains > 0 {
			p.addFlow(d, y.part*x.worthOf(k))
			p.flows[len(p.flows)-1].optional = true
			p.addItems(r.prices.nodes[x.id]+len(x.classes)+k, 1)
		}
	}
}
