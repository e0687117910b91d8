package nexus

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Session is one model with the load and the objective it is to be served with.
type Session struct {
	Rate   float64 // items/s, > 0
	Budget time.Duration
	// Took is how long a batch takes; it never falls with the batch.
	Latency func(batch int) time.Duration
	// Most is the largest batch, >= 1.
	MaxBatch int
	// Memory is what the model takes with such batches; nil where it does not matter.
	Memory func(batch int) int64
}

// Node is one machine that runs batches of its sessions in turn.
type Node struct {
	Duty     time.Duration // in which each session has one batch
	Sessions []NodeSession
}

// Part is a session on a node.
type NodeSession struct {
	Session int
	Batch   int
	Rate    float64 // items/s
}

// busy is the time of the duty cycle in which a node runs.
func (n *Node) busy(sessions []Session) (out time.Duration) {
	for _, p := range n.Sessions {
		out += sessions[p.Session].Latency(p.Batch)
	}
	return out
}

// Occupancy is the part of the time in which a node runs.
func (n *Node) Occupancy(sessions []Session) float64 {
	return float64(n.busy(sessions)) / float64(n.Duty)
}

// saturating is the largest batch that an item which has just missed one can wait for and still be in time with the
// next: it takes at most half of the objective (Nexus §4.1). It is 0 where not even one item does.
func (s *Session) saturatingBatch() int {
	if s.MaxBatch < 1 || 2*s.Latency(1) > s.Budget {
		return 0
	}
	return largest(s.MaxBatch, func(b int) bool { return 2*s.Latency(b) <= s.Budget })
}

// largest is the largest number from 1 to most for which ok holds, which holds for 1 and up to some number.
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

// Pack is squishy bin packing (Nexus §6.1): what fills machines gets them, in the largest batches in time; what is left
// of each session gets a part of a duty cycle, and machines are merged while their batches, made smaller for a shorter
// cycle, fit into it. It returns false for the first session of which not even a batch of one is in time. memory is
// that of a machine, 0 for no limit.
func Pack(sessions []Session, memory int64) (nodes []Node, failed int, ok bool) {
	type rest struct {
		node      Node
		occupancy float64
	}
	var rests []rest
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
			rests = append(rests, rest{n, n.Occupancy(sessions)})
		}
	}
	slices.SortStableFunc(rests, func(a, b rest) int { return cmp.Compare(b.occupancy, a.occupancy) })
	first := len(nodes)
	for _, r := range rests {
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

// residual is a node of its own for a rate that does not fill one: the largest batch of which the last item comes early
// enough for the first to be in time, with the longest duty cycle that the rate and the objective allow (as the
// authors' release has it, whose batch is (b-1)/rate and not b/rate in coming together). Where that batch is too small
// to carry the rate, the node runs one batch after the other, as a full one.
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

// merge lets a node take what another has: in the shorter of their cycles, with the batches that come together in it.
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
