package pipeline

// MostTasks bounds the tasks into which the items of a query are divided at a stage.
const MostTasks = 256

// MeanItems returns, by position, the items that reach each stage for each item of a query when every edge carries its
// mean fan-out. As in Progress, a join gets the most that any edge delivers. Where fan-outs scatter, a join gets more
// than that on average, because the mean of a maximum is at least the maximum of the means. A stage that is called for
// each query gets one item of queries of one item, and less than that for each item of larger ones.
func (g *Graph) MeanItems() []float64 {
	items := make([]float64, len(g.stages))
	items[0] = 1
	for at := range g.stages {
		for k := range g.stages[at].next {
			e := &g.stages[at].next[k]
			items[e.To] = max(items[e.To], e.Delivers(items[at]))
		}
	}
	return items
}

// LongestPath returns the number of stages, at least 1, on the longest path from the first stage to a final one.
func (g *Graph) LongestPath() int {
	longest := 1
	depth := make([]int, len(g.stages)) // number of stages before each on the longest path to it
	for at := range g.stages {
		longest = max(longest, depth[at]+1)
		for _, e := range g.stages[at].next {
			depth[e.To] = max(depth[e.To], depth[at]+1)
		}
	}
	return longest
}
