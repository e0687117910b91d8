// Package pq is an indexed binary min-heap: a priority queue over small integers whose keys may change.
package pq

// Heap orders integers by a 64-bit key, ties by the integer, so that the order does not depend on the order of calls.
// The zero value is empty and ready to use. Set and Remove take O(log n), Min takes O(1). Nothing is allocated once the
// largest integer has been seen.
type Heap struct {
	// by integer
	keys []int64
	heap []int32 // integers in heap order
	at   []int32 // by integer: its position in heap, or -1
}

// Len returns how many integers are in the heap.
func (h *Heap) Len() int { return len(h.heap) }

// Min returns the integer with the smallest key, and that key; ok is false when the heap is empty.
func (h *Heap) Min() (i int, key int64, ok bool) {
	if len(h.heap) == 0 {
		return 0, 0, false
	}
	i = int(h.heap[0])
	return i, h.keys[i], true
}

// AppendSmallest appends the n smallest keys to list, ascending, or all where there are fewer. It takes O(n^2), for a
// few of many.
func (h *Heap) AppendSmallest(list []int64, n int) []int64 {
	var memory [32]int32
	next := memory[:0] // positions whose parents are on the list
	if len(h.heap) > 0 {
		next = append(next, 0)
	}
	for ; n > 0 && len(next) > 0; n-- {
		k := 0
		for j := range next {
			if h.less(h.heap[next[j]], h.heap[next[k]]) {
				k = j
			}
		}
		p := next[k]
		next[k] = next[len(next)-1]
		next = next[:len(next)-1]
		list = append(list, h.keys[h.heap[p]])
		for child := 2*p + 1; child <= 2*p+2 && int(child) < len(h.heap); child++ {
			next = append(next, child)
		}
	}
	return list
}

// Key returns the key of i (>= 0); ok is false when i is not in the heap.
func (h *Heap) Key(i int) (key int64, ok bool) {
	if i >= len(h.at) || h.at[i] < 0 {
		return 0, false
	}
	return h.keys[i], true
}

// Set puts i (>= 0) into the heap with the given key, or changes its key. It needs memory in proportion to the largest
// i.
func (h *Heap) Set(i int, key int64) {
	for len(h.at) <= i {
		h.at = append(h.at, -1)
		h.keys = append(h.keys, 0)
	}
	if h.at[i] < 0 {
		h.keys[i] = key
		h.at[i] = int32(len(h.heap))
		h.heap = append(h.heap, int32(i))
		h.up(int(h.at[i]))
		return
	}
	old := h.keys[i]
	if old == key {
		return
	}
	h.keys[i] = key
	if key < old {
		h.up(int(h.at[i]))
	} else {
		h.down(int(h.at[i]))
	}
}

// Remove takes i (>= 0) out of the heap. It does nothing when i is not in it.
func (h *Heap) Remove(i int) {
	if i >= len(h.at) || h.at[i] < 0 {
		return
	}
	p := int(h.at[i])
	last := len(h.heap) - 1
	moved := h.heap[last]
	h.heap = h.heap[:last]
	h.at[i] = -1
	if p == last {
		return
	}
	h.heap[p] = moved
	h.at[moved] = int32(p)
	h.up(p)
	h.down(int(h.at[moved]))
}

// Reset empties the heap and keeps its memory.
func (h *Heap) Reset() {
	for _, i := range h.heap {
		h.at[i] = -1
	}
	h.heap = h.heap[:0]
}

func (h *Heap) less(a, b int32) bool {
	return h.keys[a] < h.keys[b] || h.keys[a] == h.keys[b] && a < b
}

func (h *Heap) up(p int) {
	i := h.heap[p]
	for p > 0 {
		parent := (p - 1) / 2
		if !h.less(i, h.heap[parent]) {
			break
		}
		h.heap[p] = h.heap[parent]
		h.at[h.heap[p]] = int32(p)
		p = parent
	}
	h.heap[p] = i
	h.at[i] = int32(p)
}

func (h *Heap) down(p int) {
	i := h.heap[p]
	for {
		child := 2*p + 1
		if child >= len(h.heap) {
			break
		}
		if child+1 < len(h.heap) && h.less(h.heap[child+1], h.heap[child]) {
			child++
		}
		if !h.less(h.heap[child], i) {
			break
		}
		h.heap[p] = h.heap[child]
		h.at[h.heap[p]] = int32(p)
		p = child
	}
	h.heap[p] = i
	h.at[i] = int32(p)
}
