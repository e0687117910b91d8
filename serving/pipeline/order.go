package pipeline

import "slices"

// Order sorts stages topologically, and keeps the order of their numbers where it can. next[k] lists the stages that
// stage k feeds. Stages that wait for each other in a circle, and those behind them, have no order. They are returned
// as stuck, ascending.
func Order(next [][]int) (sorted, stuck []int) {
	left := incoming(next) // edges whose stage is not sorted yet
	done := make([]bool, len(next))
	for len(sorted) < len(next) {
		k := 0
		for k < len(next) && (done[k] || left[k] > 0) {
			k++
		}
		if k == len(next) {
			break
		}
		done[k] = true
		sorted = append(sorted, k)
		for _, to := range next[k] {
			left[to]--
		}
	}
	for k := range done {
		if !done[k] {
			stuck = append(stuck, k)
		}
	}
	return sorted, stuck
}

// Sources returns the stages that no other feeds, ascending. next[k] lists the stages that stage k feeds.
func Sources(next [][]int) (sources []int) {
	for k, n := range incoming(next) {
		if n == 0 {
			sources = append(sources, k)
		}
	}
	return sources
}

// incoming counts the edges that lead to each stage.
func incoming(next [][]int) []int {
	n := make([]int, len(next))
	for _, to := range slices.Concat(next...) {
		n[to]++
	}
	return n
}

// Ancestors returns for each stage those from which a way leads to it, ascending. next[k] lists the stages that stage k
// feeds. Stages without an order (see Order) have none.
func Ancestors(next [][]int) [][]int {
	out := make([][]int, len(next))
	sorted, _ := Order(next)
	for _, k := range sorted {
		slices.Sort(out[k])
		out[k] = slices.Compact(out[k])
		for _, to := range next[k] {
			out[to] = append(append(out[to], out[k]...), k)
		}
	}
	return out
}
