package pipeline

import "slices"

// origin is a tensor whose rows the items of a stage are: one that a stage gives, or any of the request. Items keep
// their origins along edges without rows. Along edges with rows they become the rows of that tensor. A join may have
// several origins.
type origin struct {
	stage int // position, or Request
	rows  string
}

// findOrigins fills in the origins of all stages.
func (g *Graph) findOrigins() {
	g.stages[0].origins = []origin{{stage: Request}}
	for at := range g.stages {
		x := &g.stages[at]
		for _, e := range x.next {
			to := &g.stages[e.To]
			if e.Rows != "" {
				to.origins = union(to.origins, []origin{{at, e.Rows}})
			} else {
				to.origins = union(to.origins, x.origins)
			}
		}
	}
}

func union(a, b []origin) []origin {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}

// RowsAreItems tells whether the rows of a tensor are the items of a stage, so that a portion of the items gets its
// rows alone. from is the position of the stage that gives the tensor, or Request. It is not enough that they are as
// many: the items must come from the same rows. An image of 3 channels is not the 3 boxes that were found in it. Stages
// at and from must have their input.
func (p *Progress) RowsAreItems(at, from int, rows int64) bool {
	items := p.stages[at].items
	if rows != int64(items) {
		return false
	}
	origins := p.graph.stages[at].origins
	if from == Request {
		return items == p.stages[0].items && slices.Contains(origins, origin{stage: Request})
	}
	for _, o := range origins {
		if o.stage == from && p.sentRows(from, o.rows) == items {
			return true
		}
		if p.stages[from].items == items && slices.Contains(p.graph.stages[from].origins, o) {
			return true
		}
	}
	return false
}

// sentRows is how many rows of a tensor a stage has sent on.
func (p *Progress) sentRows(at int, rows string) int32 {
	for k, e := range p.graph.stages[at].next {
		if e.Rows == rows {
			return p.Sent(at, k)
		}
	}
	return -1
}
