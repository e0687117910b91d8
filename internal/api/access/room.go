package access

import (
	"errors"
	"sync/atomic"
)

// ErrFull and ErrPart say why nothing is taken from a room.
var (
	ErrFull = errors.New("nothing is left")
	ErrPart = errors.New("little is left, and the tenant holds more than its part")
)

// Unknown is the tenant of what is held for nobody yet.
const Unknown = -1

// keptPart is the part of a room that is kept for tenants that hold less than theirs: one in so many.
const keptPart = 8

// Room is something bounded that tenants share, such as memory or places for connections. One tenant may hold all of it
// but for the kept part, which only those get that hold less than their weight's part of the whole. So requests of one
// that wait never keep another out, and nothing lies idle but the kept part.
type Room struct {
	limit, open int64
	used        atomic.Int64
	parts       []int64 // by tenant; none where tenants do not count
	held        []atomic.Int64
}

// NewRoom returns an empty room. weights are those of [Gate.Weights].
func NewRoom(limit int64, weights []float64) *Room {
	r := &Room{limit: limit, open: limit - limit/keptPart}
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	for _, w := range weights {
		r.parts = append(r.parts, int64(float64(limit)*w/sum))
	}
	r.held = make([]atomic.Int64, len(r.parts))
	return r
}

// Used is what is held of the room.
func (r *Room) Used() int64 { return r.used.Load() }

// Held is what a tenant holds.
func (r *Room) Held(tenant int) int64 {
	if tenant < 0 || tenant >= len(r.held) {
		return 0
	}
	return r.held[tenant].Load()
}

// Full reports whether nothing is left.
func (r *Room) Full() bool { return r.used.Load() >= r.limit }

// Add has n more held by nobody in particular, or less where n is negative, whatever the limit.
func (r *Room) Add(n int64) { r.used.Add(n) }

// Take has a tenant hold n more, if that is there and the tenant may have it.
func (r *Room) Take(tenant int, n int64) error {
	if r.used.Add(n) > r.limit {
		r.used.Add(-n)
		return ErrFull
	}
	if !r.Hold(tenant, n) {
		r.used.Add(-n)
		return ErrPart
	}
	return nil
}

// Hold says that n of what is held are a tenant's. It returns false, and nothing has changed, if little is left and
// that is more than its part.
func (r *Room) Hold(tenant int, n int64) bool {
	if tenant < 0 || tenant >= len(r.held) {
		return true
	}
	if held := r.held[tenant].Add(n); r.used.Load() > r.open && held > r.parts[tenant] {
		r.held[tenant].Add(-n)
		return false
	}
	return true
}

// Let takes back that n are a tenant's.
func (r *Room) Let(tenant int, n int64) {
	if tenant >= 0 && tenant < len(r.held) {
		r.held[tenant].Add(-n)
	}
}

// Give has a tenant hold n less.
func (r *Room) Give(tenant int, n int64) {
	r.Let(tenant, n)
	r.used.Add(-n)
}

// Weights are those of tenants by their numbers, the first that of callers without a tenant; none without tenants.
func (g *Gate) Weights() (out []float64) {
	if len(g.c.Tenants) == 0 {
		return nil
	}
	out = []float64{1}
	if g.fallback != 0 { // then no caller is without a tenant
		out[0] = 0
	}
	for _, t := range g.c.Tenants {
		if t.Weight <= 0 {
			t.Weight = 1
		}
		out = append(out, t.Weight)
	}
	return out
}
