package cells

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
)

// Assign says who is to hold each cell: every live replica as many as any other, or one more. holders has the present
// holder of each cell, "" where it has none. As few cells as possible move. A cell whose holder is not live, and has
// not lapsed either, stays with it. Replicas that see the same assign the same.
func Assign(holders map[int]string, live []string) map[int]string {
	out := make(map[int]string, len(holders))
	if len(live) == 0 {
		maps.Copy(out, holders)
		return out
	}
	held := make(map[string][]int, len(live))
	for _, id := range live {
		held[id] = nil
	}
	var pool []int
	count := 0
	for _, cell := range slices.Sorted(maps.Keys(holders)) {
		id := holders[cell]
		_, alive := held[id]
		switch {
		case id != "" && !alive:
			out[cell] = id
			continue
		case id == "":
			pool = append(pool, cell)
		default:
			held[id] = append(held[id], cell)
		}
		count++
	}
	// Those that hold most keep the cell more, if there is one: nothing moves without need.
	order := slices.SortedFunc(maps.Keys(held), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(held[b]), len(held[a])), cmp.Compare(a, b))
	})
	room := make(map[string]int, len(order))
	for k, id := range order {
		quota := count / len(order)
		if k < count%len(order) {
			quota++
		}
		for n, cell := range held[id] {
			if n < quota {
				out[cell] = id
			} else {
				pool = append(pool, cell)
			}
		}
		room[id] = max(0, quota-len(held[id]))
	}
	slices.Sort(pool)
	for _, cell := range pool {
		best := ""
		for _, id := range order {
			if room[id] == 0 {
				continue
			}
			if best == "" || room[id] > room[best] || room[id] == room[best] && mixed(cell, id) > mixed(cell, best) {
				best = id
			}
		}
		out[cell] = best
		room[best]--
	}
	return out
}

// mixed spreads cells among equal replicas.
func mixed(cell int, id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte{byte(cell), byte(cell >> 8), byte(cell >> 16)})
	_, _ = h.Write([]byte(id))
	return h.Sum64()
}
