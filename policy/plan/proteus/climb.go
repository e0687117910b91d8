package proteus

// climber improves an allocation by moving single workers, and by letting two stages exchange workers of two groups, until
// nothing gains. The search of the program then begins near its end, and spends its nodes on the proof: with the rounded plan
// alone, searches for fleets at their limit end at the node limit several per cent below the bound.
type climber struct {
	m        *problem
	counts   []int
	fraction []float64 // of the demand that is to be served, by stage
	worth    []float64 // of what the stage has now
	byGroup  [][]int   // pairs
	cells    [][][]int // pairs by group and stage
	left     int       // exchanges that may still be tried
}

// tries bounds the exchanges of a climb: a fifth of a second, at the most. Small fleets need a tenth of them.
const tries = 300_000

// gain is what an exchange must bring at least: rounding errors must not go in circles.
const gain = 1e-9

// climb improves counts in place. fraction, by stage, is what is to be served of the demand.
func (m *problem) climb(counts []int, fraction []float64) {
	c := &climber{m: m, counts: counts, fraction: fraction, worth: make([]float64, len(m.stages)), byGroup: make([][]int, len(m.groups)), cells: make([][][]int, len(m.groups)), left: tries}
	for g := range m.groups {
		c.cells[g] = make([][]int, len(m.stages))
	}
	for k := range m.pairs {
		p := &m.pairs[k]
		c.byGroup[p.group] = append(c.byGroup[p.group], k)
		c.cells[p.group][p.stage] = append(c.cells[p.group][p.stage], k)
	}
	for s := range m.stages {
		c.worth[s] = c.value(s)
	}
	for c.left > 0 && (c.move() || c.exchange()) {
	}
}

// value is what a stage brings: accuracy over its queries, and far less for every query that is missing.
func (c *climber) value(s int) float64 {
	st := &c.m.stages[s]
	served, sum := c.m.serve(s, c.counts, c.fraction[s], nil)
	return st.weight * (sum - shedding*(c.fraction[s]*st.demand-served))
}

// try takes workers from pairs and gives them to others, and keeps that when it gains.
func (c *climber) try(from, to []int) bool {
	stages := [4]int{}
	n := 0
	add := func(k int) {
		s := int(c.m.pairs[k].stage)
		for _, x := range stages[:n] {
			if x == s {
				return
			}
		}
		stages[n] = s
		n++
	}
	c.left--
	for i := range from {
		add(from[i])
		add(to[i])
	}
	for i := range from {
		c.counts[from[i]]--
		c.counts[to[i]]++
	}
	before, after := 0.0, 0.0
	values := [4]float64{}
	for i, s := range stages[:n] {
		values[i] = c.value(s)
		before += c.worth[s]
		after += values[i]
	}
	if after > before+gain*(1+max(before, -before)) {
		for i, s := range stages[:n] {
			c.worth[s] = values[i]
		}
		return true
	}
	for i := range from {
		c.counts[from[i]]++
		c.counts[to[i]]--
	}
	return false
}

// move lets every worker change its variant, of its own stage or another.
func (c *climber) move() (improved bool) {
	var a, b [1]int
	for _, pairs := range c.byGroup {
		for _, a[0] = range pairs {
			for _, b[0] = range pairs {
				if c.counts[a[0]] > 0 && a != b && c.left > 0 && c.try(a[:], b[:]) {
					improved = true
				}
			}
		}
	}
	return improved
}

// exchange lets two stages swap a worker of one group for one of another.
func (c *climber) exchange() (improved bool) {
	var from, to [2]int
	for g := range c.m.groups {
		for h := range c.m.groups {
			if g == h {
				continue
			}
			for s := range c.m.stages {
				for t := range c.m.stages {
					if s == t || len(c.cells[g][t]) == 0 || len(c.cells[h][s]) == 0 {
						continue
					}
					for _, from[0] = range c.cells[g][s] {
						if c.counts[from[0]] == 0 {
							continue
						}
						for _, from[1] = range c.cells[h][t] {
							if c.counts[from[1]] == 0 {
								continue
							}
							for _, to[0] = range c.cells[g][t] {
								for _, to[1] = range c.cells[h][s] {
									if c.counts[from[0]] > 0 && c.counts[from[1]] > 0 && c.left > 0 && c.try(from[:], to[:]) {
										improved = true
									}
								}
							}
						}
					}
				}
			}
		}
	}
	return improved
}
