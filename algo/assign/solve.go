package assign

import "math"

// solve gives each of n agents one of m lines, n <= m. Prices of lines start at zero and only fall, and only of lines that have an
// agent; such a line keeps one. So a line that stays free costs nothing, which makes the prices a proof.
func (s *Solver) solve(n, m int, cost []float64) {
	s.line, s.agent = sized(s.line, n), sized(s.agent, m)
	s.price, s.rent = sized(s.price, m), sized(s.rent, n)
	s.distance, s.before, s.order = sized(s.distance, m), sized(s.before, m), sized(s.order, m)
	for j := range s.agent {
		s.agent[j], s.price[j] = -1, 0
	}
	s.waits = sized(s.waits, n)
	for i := range s.waits {
		s.waits[i] = int32(i)
	}
	if m > 1 {
		s.bid(m, cost)
		s.bid(m, cost)
	}
	for _, i := range s.waits {
		s.augment(i, m, cost)
	}
	for i, j := range s.line {
		s.rent[i] = cost[i*m+int(j)] - s.price[j]
	}
}

// bid is the augmenting row reduction: each agent that waits takes its best line and lowers the line's price until its second best is
// as good; who is driven out bids next. Where a bid would not move the price, the agent waits for a search.
func (s *Solver) bid(m int, cost []float64) {
	price, agent := s.price[:m], s.agent[:m]
	left, tries := s.waits[:0], 4*len(s.waits)
	for _, i := range s.waits {
		for i >= 0 {
			best, second, a, b := twoBest(cost[int(i)*m:][:m], price, agent)
			lower := price[a] - (second - best)
			switch {
			case lower < price[a] && tries > 0:
				price[a] = lower
				tries--
			case agent[a] < 0:
			case lower == price[a] && agent[b] < 0:
				a = b
			default:
				left = append(left, i)
				a = -1
			}
			if a < 0 {
				break
			}
			out := agent[a]
			agent[a], s.line[i] = i, int32(a)
			i = out
		}
	}
	s.waits = left
}

// twoBest returns the two smallest of cost less price and where they are; the second is, of equals, one that is free.
func twoBest(row, price []float64, agent []int32) (best, second float64, a, b int) {
	best, second = math.Inf(1), math.Inf(1)
	price, agent = price[:len(row)], agent[:len(row)]
	for j, x := range row {
		x -= price[j]
		if x > second {
			continue
		}
		switch {
		case x < best:
			best, second, a, b = x, best, j, a
		case x < second || agent[b] >= 0:
			second, b = x, j
		}
	}
	return best, second, a, b
}

// augment gives agent i a line along the shortest path, by reduced costs, to a line that is free.
func (s *Solver) augment(i int32, m int, cost []float64) {
	distance, before, order := s.distance[:m], s.before[:m], s.order[:m]
	price, agent := s.price[:m], s.agent[:m]
	row := cost[int(i)*m:][:m]
	low, at := math.Inf(1), 0
	for j, x := range row {
		x -= price[j]
		distance[j], before[j], order[j] = x, i, int32(j)
		if x < low || x == low && agent[order[at]] >= 0 && agent[j] < 0 {
			low, at = x, j
		}
	}
	done := 0
	var end int32
	for {
		j := order[at]
		order[at], order[done] = order[done], j
		done++
		k := agent[j]
		if k < 0 {
			end = j
			break
		}
		row := cost[int(k)*m:][:m]
		past := low
		shift := row[j] - price[j] - low
		low, at = math.Inf(1), done
		for p := done; p < len(order); p++ {
			j := int(order[p])
			d := distance[j]
			if x := row[j] - price[j] - shift; x < d {
				d = max(x, past) // rounding must not lead back
				distance[j], before[j] = d, k
			}
			if d < low || d == low && agent[order[at]] >= 0 && agent[j] < 0 {
				low, at = d, p
			}
		}
	}
	for _, j := range order[:done-1] {
		price[j] += distance[j] - low
	}
	for {
		k := before[end]
		agent[end] = k
		end, s.line[k] = s.line[k], end
		if k == i {
			return
		}
	}
}
