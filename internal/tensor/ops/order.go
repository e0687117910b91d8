package ops

import "slices"

// better orders by value, largest first. NaN comes last, and equal values keep the order of their indices.
func better(a, b float32, i, j int) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	case a == a && b != b:
		return -1
	case a != a && b == b:
		return 1
	}
	return i - j
}

// largest puts the k best of list first, in order. For a small k it keeps a heap of the best so far, with the worst of
// them on top.
func largest(list []int, k int, value func(int) float32) {
	compare := func(i, j int) int { return better(value(i), value(j), i, j) }
	if k*8 > len(list) {
		slices.SortFunc(list, compare)
		return
	}
	heap := list[:k]
	down := func(at int) {
		for {
			child := 2*at + 1
			if child >= k {
				return
			}
			if child+1 < k && compare(heap[child+1], heap[child]) > 0 {
				child++
			}
			if compare(heap[child], heap[at]) <= 0 {
				return
			}
			heap[child], heap[at] = heap[at], heap[child]
			at = child
		}
	}
	for at := k/2 - 1; at >= 0; at-- {
		down(at)
	}
	for i := k; i < len(list); i++ {
		if compare(list[i], heap[0]) < 0 {
			heap[0], list[i] = list[i], heap[0]
			down(0)
		}
	}
	slices.SortFunc(heap, compare)
}
