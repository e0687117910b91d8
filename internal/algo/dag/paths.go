package dag

import "time"

// Around returns, for each task of a graph, the longest path that leads to it and the longest one from its end, given
// the lengths of the tasks. next[k] lists the tasks that follow task k; all have larger numbers. With the task's own
// length the two add up to the longest path through it.
func Around[T float64 | time.Duration](next [][]int, length []T) (before, behind []T) {
	before, behind = make([]T, len(length)), make([]T, len(length))
	for k := range next {
		for _, n := range next[k] {
			before[n] = max(before[n], before[k]+length[k])
		}
	}
	for k := len(next) - 1; k >= 0; k-- {
		for _, n := range next[k] {
			behind[k] = max(behind[k], length[n]+behind[n])
		}
	}
	return before, behind
}
