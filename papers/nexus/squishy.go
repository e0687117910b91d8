package nexus

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Session is one model with its load and objective.
type Session struct {
	Rate   float64 // items/s, > 0
	Budget time.Duration
	// Latency returns how long a batch takes; it never falls with the batch.
	Latency func(batch int) time.Duration
	// MaxBatch is the largest batch, >= 1.
	MaxBatch int
	// Memory returns the bytes that the model takes with such batches; nil where memory does not matter.
	Memory func(batch int) int64
}

// Node is one machine that runs batches of its sessions in turn.
type Node struct {
	Duty     time.Duration // the cycle in which each session has one batch
	Sessions []NodeSession
}

// NodeSession is the part of a session's load that a node carries.
type NodeSession struct {
	Session int     // index of the session
	Batch   int     // items
	Rate    float64 // items/s
}

// busy is the time of the duty cycle in which a node runs.
func (n *Node) busy(sessions []Session) (out time.Duration) {
	for _, p := range n.Sessions {
		out += sessions[p.Session].Latency(p.Batch)
	}
	return out
}

// Occupancy returns the part of the time in which a node runs. sessions are those given to Pack.
func (n *Node) Occupancy(sessions []Session) float64 {
	return float64(n.busy(sessions)) / float64(n.Duty)
}

// saturatingBatch is the largest batch for which an item that has just missed a batch is in time with the next: it
// takes at most half of the budget (Nexus §4.1). It is 0 where not even one item does.
func (s *Session) saturatingBatch() int {
	if s.MaxBatch < 1 || 2*s.Latency(1) > s.Budget {
		return 0
	}
	return largest(s.MaxBatch, func(b int) bool { return 2*s.Latency(b) <= s.Budget })
}

// largest returns the largest number from 1 to most for which ok holds, by bisection. ok must hold for 1 and up to some
// number.
func largest(most int, ok func(int) bool) int {
	low, high := 1, most+1
	for high-low > 1 {
		if mid := (low + high) / 2; ok(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// Pack is squishy bin packing (Nexus §6.1). It returns nodes that carry the rates of all sessions; NodeSession.Session
// is the index of a session. memory is that of a machine in bytes, 0 for no limit. If not even a batch of one is in
// time for a session, ok is false and failed is its index. It takes O(n^2) merges for n sessions.
func Pack(sessions []Session, memory int64) (nodes []Node, failed int, ok bool) {
	// Step 1: sessions fill nodes with their largest batches in time. Each residual load gets a node of its own for
	// now.
	type residual struct {
		node      Node
		occupancy float64
	}
	var residuals []residual
	for k := range sessions {
		s := &sessions[k]
		b := s.saturatingBatch()
		if b == 0 {
			return nil, k, false
		}
		full := float64(b) / s.Latency(b).Seconds()
		left := s.Rate
		for ; left >= full*(1-rounding); left -= full {
			nodes = append(nodes, Node{Duty: s.Latency(b), Sessions: []NodeSession{{k, b, min(full, left)}}})
		}
		if left > rounding*s.Rate {
			n := s.residualNode(k, left)
			residuals = append(residuals, residual{n, n.Occupancy(sessions)})
		}
	}
	// Step 2: the nodes of residual loads are merged, the busiest first, each into the node that it fills most. Merging
	// shortens the duty cycle, and batches shrink to fit it.
	slices.SortStableFunc(residuals, func(a, b residual) int { return cmp.Compare(b.occupancy, a.occupancy) })
	first := len(nodes)
	for _, r := range residuals {
		best, most := -1, 0.0
		var with Node
		for k := first; k < len(nodes); k++ {
			n, ok := merge(sessions, nodes[k], r.node, memory)
			if !ok {
				continue
			}
			if o := n.Occupancy(sessions); o > most {
				best, most, with = k, o, n
			}
		}
		if best < 0 {
			nodes = append(nodes, r.node)
		} else {
			nodes[best] = with
		}
	}
	return nodes, 0, true
}

// rounding is the part of a rate that may be missing by floating point alone.
const rounding = 1e-9

// residualNode returns a node for a rate that does not fill one. Its batch is the largest whose last item arrives early
// enough for the first to be in time. Its duty cycle is the longest that the rate and the objective allow. As in the
// authors' release a batch of b takes (b-1)/rate to form, not b/rate. If that batch is too small for the rate, the node
// runs one batch after the other, like a full one.
func (s *Session) residualNode(session int, rate float64) Node {
	full := s.saturatingBatch()
	b := largest(full, func(b int) bool { return s.Latency(b)+seconds(float64(b-1)/rate) <= s.Budget })
	duty := min(seconds(float64(b)/rate), s.Budget-s.Latency(b))
	if duty < s.Latency(b) {
		b, duty = full, s.Latency(full)
	}
	return Node{Duty: duty, Sessions: []NodeSession{{session, b, rate}}}
}

func seconds(x float64) time.Duration {
	return time.Duration(min(x*float64(time.Second), math.MaxInt64/2))
}

// merge lets one node take the sessions of another. The duty cycle is the shorter of both, and each session gets the
// batch that forms in it.
func merge(sessions []Session, a, b Node, memory int64) (Node, bool) {
	out := Node{Duty: min(a.Duty, b.Duty)}
	taken := int64(0)
	for _, p := range slices.Concat(a.Sessions, b.Sessions) {
		p.Batch = max(1, int(math.Ceil(p.Rate*out.Duty.Seconds()-rounding)))
		s := &sessions[p.Session]
		if p.Batch > s.MaxBatch || s.Latency(p.Batch)+out.Duty > s.Budget {
			return Node{}, false
		}
		if s.Memory != nil {
			taken += s.Memory(p.Batch)
		}
		out.Sessions = append(out.Sessions, p)
	}
	return out, out.busy(sessions) <= out.Duty && (memory <= 0 || taken <= memory)
}
