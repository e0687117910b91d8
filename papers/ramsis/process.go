package ramsis

import (
	"math"
	"sort"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/mdp"
)

// action is what may be done in a state: run a batch of a model, or give up the first query.
type action struct {
	model  int32 // -1: the first query is given up
	batch  int32
	inTime bool // the first deadline is met (SLOSatisfied, §4.1)
}

// problem is a worker's decision process with the meaning of its states and actions.
//
// A state is (n, T_j): n queries wait and the first has at least T_j left (§4.2). The empty queue is no state of its
// own: an action that empties the queue leads to (1, SLO) with the next arrival (Eq. 1).
//
// Transitions take two steps. The first leads from an action to the age of the first new arrival at the end of the
// batch, or to no arrival. The second leads to the number of queries that came after it. The second step does not
// depend on the action. Therefore tables of several thousand states are solved in a tenth of a second.
type problem struct {
	*Worker
	mdp.Process
	levels  []time.Duration // T_w
	actions []action
	streams []*stream
	edges   []float64 // ages in s between which the nodes of a stream lie, ascending from 0
	level   []int     // by node of a stream: index of the slack that its age leaves
	// firstStateNode is the first of the nodes that stand for a state; -1 when no action leaves queries behind.
	firstStateNode int
}

func (p *problem) state(n, level int) int { return level*p.MaxQueue + n - 1 }
func (p *problem) overflow() int          { return len(p.levels) * p.MaxQueue }

func seconds(d time.Duration) float64 { return d.Seconds() }

func newProblem(w *Worker) *problem {
	p := &problem{Worker: w, levels: w.slacks(), firstStateNode: -1}
	p.streams = streams(w)
	p.cutAges()
	nodes := 1 + len(p.streams)*len(p.level)
	if w.Variable || w.Drop {
		p.firstStateNode = nodes
	}
	p.addSecondStep()
	p.addActions()
	return p
}

// cutAges cuts the ages that a waiting query can have into pieces, none of them across two slacks. An arrival counts as
// in the middle of its piece.
func (p *problem) cutAges() {
	longest := p.SLO
	for n := 1; n <= p.MaxQueue; n++ { // beyond the objective only the fastest batches run
		m, b := p.fastest(n)
		longest = max(longest, p.Models[m].latency(b))
	}
	// Half a per cent of the objective: a finer cut changes no probability by more than a thousandth.
	width := seconds(p.SLO) / 200
	cut := func(from, to float64, level int) {
		n := max(int(math.Ceil((to-from)/width-1e-9)), 1)
		for k := range n {
			p.edges = append(p.edges, from+(to-from)*float64(k)/float64(n))
			p.level = append(p.level, level)
		}
	}
	for j := len(p.levels) - 2; j >= 0; j-- {
		cut(seconds(p.SLO-p.levels[j+1]), seconds(p.SLO-p.levels[j]), j)
	}
	if longest > p.SLO {
		cut(seconds(p.SLO), seconds(longest), 0)
	}
	p.edges = append(p.edges, seconds(longest))
}

// addSecondStep fills in the second step: how many queries come between the first arrival and the end of the batch.
func (p *problem) addSecondStep() {
	s := &mdp.Rows{}
	s.Add(p.state(1, len(p.levels)-1), 1)
	s.End()
	for _, x := range p.streams {
		for i, level := range p.level {
			left := 1.0
			x.laterArrivals((p.edges[i]+p.edges[i+1])/2, p.MaxQueue, func(more int, share float64) {
				s.Add(p.state(1+more, level), share)
				left -= share
			})
			s.Add(p.overflow(), max(left, 0))
			s.End()
		}
	}
	if p.firstStateNode >= 0 {
		for at := range p.overflow() + 1 {
			s.Add(at, 1)
			s.End()
		}
	}
	p.Spread = s
}

// addActions fills in the actions of all states and their first steps.
func (p *problem) addActions() {
	p.First = []int32{0}
	f := newFirstStep(p)
	for j := range p.levels {
		for n := 1; n <= p.MaxQueue; n++ {
			f.setState(n, j)
			p.addChoices(f, n, j)
			p.First = append(p.First, int32(len(p.actions)))
		}
	}
	f.setState(p.MaxQueue, 0)
	p.addChoices(f, p.MaxQueue, 0)
	p.First = append(p.First, int32(len(p.actions)))
}

// addChoices adds the actions of a state (§4.3).
func (p *problem) addChoices(f *firstStep, n, level int) {
	left := p.levels[level]
	begun := len(p.actions)
	for b := n; b >= 1; b-- {
		if b < n && !p.Variable {
			break
		}
		before := time.Duration(math.MaxInt64)
		accuracy := math.Inf(1)
		for m := len(p.Models) - 1; m >= 0; m-- {
			l := p.Models[m].latency(b)
			// Of two models in time, one that is slower and no more accurate is never useful.
			if l == 0 || l > left || l >= before && p.Models[m].Accuracy <= accuracy {
				continue
			}
			before, accuracy = l, p.Models[m].Accuracy
			p.addAction(f, action{model: int32(m), batch: int32(b), inTime: true}, n, level)
		}
	}
	if len(p.actions) > begun && !p.Variable {
		return
	}
	if m, b := p.fastest(n); len(p.actions) == begun || p.Models[m].latency(b) > left {
		p.addLate(f, n, level, m, b)
	}
}

// addLate adds the action for a state in which not all queries can be in time.
func (p *problem) addLate(f *firstStep, n, level, m, b int) {
	if !p.Drop {
		// Late queries are served, as soon as possible.
		p.addAction(f, action{model: int32(m), batch: int32(b)}, n, level)
		return
	}
	for ; b >= 1; b-- {
		for m := range p.Models {
			if l := p.Models[m].latency(b); l > 0 && l <= p.levels[level] {
				if !p.Variable { // otherwise it has been added already
					p.addAction(f, action{model: int32(m), batch: int32(b), inTime: true}, n, level)
				}
				return
			}
		}
	}
	p.addAction(f, action{model: -1, batch: 1}, n, level)
}

// fastest returns the model that finishes a batch of all n queries first. If no model takes so many, it returns the
// largest possible batch and the model that finishes that first.
func (p *problem) fastest(n int) (model, batch int) {
	for b := n; ; b-- {
		best := -1
		for m := range p.Models {
			if l := p.Models[m].latency(b); l > 0 && (best < 0 || l < p.Models[best].latency(b)) {
				best = m
			}
		}
		if best >= 0 {
			return best, b
		}
	}
}

func (p *problem) addAction(f *firstStep, a action, n, level int) {
	p.actions = append(p.actions, a)
	reward := 0.0
	if a.inTime {
		reward = p.Models[a.model].Accuracy
	}
	p.Reward = append(p.Reward, reward)
	var took time.Duration
	if a.model >= 0 {
		took = p.Models[a.model].latency(int(a.batch))
	}
	if int(a.batch) == n {
		f.addWhole(took)
	} else {
		f.addPartial(n, level, int(a.batch), took)
	}
	p.Next.End()
}

// latency returns the time of an action; 0 for giving up.
func (p *problem) latency(a *action) time.Duration {
	if a.model < 0 {
		return 0
	}
	return p.Models[a.model].latency(int(a.batch))
}

// levelOf returns the index of the largest slack that is at most left seconds.
func (p *problem) levelOf(left float64) int {
	d := time.Duration(math.Floor(left*1e9 + 0.5))
	at := sort.Search(len(p.levels), func(j int) bool { return p.levels[j] > d })
	return max(at-1, 0)
}
