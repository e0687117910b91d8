package pipeline

// Progress counts how far one query has come through a graph.
//
// A stage gets its input along all edges that lead to it; a join waits for the last of them. It works on as many items
// as the edge that delivers most, because branches saw the same things. All that it is sent along an edge that collects
// is one item. A stage that gets no item is passed over: it does not run, and sends nothing on. So a stage that finds
// nothing has all stages passed over that get items from it alone, and from stages that were passed over.
//
// The items of a stage run in one portion or in several, which end in any order. The zero value is ready for Start.
type Progress struct {
	graph  *Graph
	stages []stageProgress
	sent   []int32 // by edge of the graph
	over   int     // stages
}

type stageProgress struct {
	delivered int32 // edges
	items     int32 // that it works on, once all edges have delivered
	served    int32
	over      bool
}

// Change is what became of a stage when another, or its own last portion, ended.
type Change struct {
	Stage int // position
	Kind  ChangeKind
}

// ChangeKind is the kind of a Change.
type ChangeKind uint8

// The kinds.
const (
	Ran        ChangeKind = iota // all its items are served
	PassedOver                   // it gets no item, and is over without having run
	Ready                        // it has its input, and is to run
)

// Start begins to count for a query that brings so many items. What was counted before is forgotten; its memory is used
// again.
func (p *Progress) Start(g *Graph, items int32) {
	p.graph, p.over = g, 0
	if cap(p.stages) < len(g.stages) {
		p.stages = make([]stageProgress, len(g.stages))
	}
	if cap(p.sent) < g.edges {
		p.sent = make([]int32, g.edges)
	}
	p.stages, p.sent = p.stages[:len(g.stages)], p.sent[:g.edges]
	clear(p.stages)
	clear(p.sent)
	p.stages[0].items = items
}

// Graph returns the graph that the query goes through.
func (p *Progress) Graph() *Graph { return p.graph }

// Items returns the number of items that a stage works on; 0 as long as no edge has delivered any.
func (p *Progress) Items(at int) int32 { return p.stages[at].items }

// Sent returns how many items the portions of a stage that have ended have sent along one of its edges, by its index in
// Graph.Next.
func (p *Progress) Sent(at, edge int) int32 { return p.sent[p.graph.stages[at].firstEdge+edge] }

// Over tells whether a stage has served all its items, or is passed over.
func (p *Progress) Over(at int) bool { return p.stages[at].over }

// Done tells whether all stages are over.
func (p *Progress) Done() bool { return p.over == len(p.stages) }

// Served counts a portion of a stage's items that ended well. sent has the items that it sends along each edge of the
// stage, in the order of Graph.Next; nil stands for as many as expected (Edge.Expected). It appends to out all that
// follows, and nothing when items of the stage are left: first that the stage ran, then the changes along each edge in
// the order of Graph.Next, where that of a stage that is passed over is followed by those along its edges.
func (p *Progress) Served(at int, items int32, sent []int32, out []Change) []Change {
	x := &p.graph.stages[at]
	for k := range x.next {
		n := x.next[k].Expected(items)
		if sent != nil {
			n = sent[k]
		}
		p.sent[x.firstEdge+k] += n
	}
	s := &p.stages[at]
	s.served += items
	if s.served < s.items {
		return out
	}
	return p.finish(at, Ran, out)
}

// finish delivers along the edges of a stage that is over.
func (p *Progress) finish(at int, kind ChangeKind, out []Change) []Change {
	p.stages[at].over = true
	p.over++
	out = append(out, Change{at, kind})
	x := &p.graph.stages[at]
	for k := range x.next {
		to := x.next[k].To
		s := &p.stages[to]
		s.delivered++
		s.items = max(s.items, delivered(&x.next[k], p.sent[x.firstEdge+k]))
		switch {
		case int(s.delivered) < len(p.graph.stages[to].predecessors):
		case s.items == 0:
			out = p.finish(to, PassedOver, out)
		default:
			out = append(out, Change{to, Ready})
		}
	}
	return out
}
