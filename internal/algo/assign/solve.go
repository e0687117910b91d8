package assign

import "math"

// solve assigns every row to a column, or every column to a row.
//
// With enough columns for all rows, column prices start at zero and only fall, and only those of columns that have a
// row; a column never loses its row for good. So a free column has price zero, which makes the prices a proof. If every
// column gets a row, any starting prices of a similar magnitude will do.
func (s *Solver) solve(rows, cols int, cost []float64, most float64) {
	s.column, s.row = resized(s.column, rows), resized(s.row, cols)
	if !s.Warm || rows < cols || len(s.v) != cols || largest(s.v) > 2*most {
		s.v = resized(s.v, cols)
		clear(s.v)
	}
	s.u = resized(s.u, rows)
	s.distance, s.reachedFrom = resized(s.distance, cols), resized(s.reachedFrom, cols)
	for c := range s.row {
		s.row[c] = -1
	}
	s.unassigned = resized(s.unassigned, rows)
	for r := range s.unassigned {
		s.unassigned[r] = int32(r)
	}
	if rows > cols {
		s.moveCheapestFirst(cols, cost)
	}
	rest := s.unassigned[min(rows, cols):]
	s.unassigned = s.unassigned[:min(rows, cols)]
	// Step 1: two rounds of augmenting row reduction.
	if cols > 1 {
		s.reduceRows(cols, cost)
		s.reduceRows(cols, cost)
	}
	// Step 2: a shortest augmenting path for every row that is left.
	for _, r := range s.unassigned {
		s.augment(r, cols, cost, math.Inf(1))
	}
	// Step 3: rows beyond the number of columns are inserted one at a time, and one row, perhaps the inserted one,
	// stays without a column. Every row may stay without one, at the highest price of a row so far.
	without := 0.
	if rows > cols {
		without = math.Inf(-1)
		for c, r := range s.row {
			without = max(without, cost[int(r)*cols+c]-s.v[c])
		}
		for _, r := range rest {
			s.augment(r, cols, cost, without)
		}
		for c := range s.v {
			s.v[c] += without
		}
	}
	// Step 4: row prices follow from the matched pairs, whose reduced costs are zero.
	for r, c := range s.column {
		s.u[r] = 0
		if c >= 0 {
			s.u[r] = cost[r*cols+int(c)] - s.v[c]
		}
	}
}

// moveCheapestFirst moves as many rows as there are columns to the front of unassigned, those with the smallest costs:
// most of them keep a column. It is a quickselect.
func (s *Solver) moveCheapestFirst(cols int, cost []float64) {
	s.u = resized(s.u, len(s.unassigned))
	for r := range s.u {
		low := math.Inf(1)
		for _, x := range cost[r*cols:][:cols] {
			if x < low {
				low = x
			}
		}
		s.u[r] = low
	}
	list := s.unassigned
	for cols > 0 && cols < len(list) {
		pivot, at := s.u[list[len(list)/2]], 0
		for lo, hi := 0, len(list)-1; ; lo, hi = lo+1, hi-1 {
			for s.u[list[lo]] < pivot {
				lo++
			}
			for s.u[list[hi]] > pivot {
				hi--
			}
			if at = lo; lo >= hi {
				break
			}
			list[lo], list[hi] = list[hi], list[lo]
		}
		switch {
		case at == 0:
			list, cols = list[1:], cols-1
		case at > cols:
			list = list[:at]
		default:
			list, cols = list[at:], cols-at
		}
	}
}

// reduceRows is the augmenting row reduction. Each unassigned row takes its best column and lowers the column's price
// until its second best is as good. The row that loses the column bids next. A row whose bid would not move a price
// waits for a search.
func (s *Solver) reduceRows(cols int, cost []float64) {
	price, owner := s.v[:cols], s.row[:cols]
	left, tries := s.unassigned[:0], 4*len(s.unassigned)
	for _, r := range s.unassigned {
		for r >= 0 {
			best, second, a, b := twoBest(cost[int(r)*cols:][:cols], price, owner)
			lower := price[a] - (second - best)
			switch {
			case lower < price[a] && tries > 0:
				price[a] = lower
				tries--
			case owner[a] < 0:
			case lower == price[a] && owner[b] < 0:
				a = b
			default:
				left = append(left, r)
				a = -1
			}
			if a < 0 {
				break
			}
			out := owner[a]
			owner[a], s.column[r] = r, int32(a)
			r = out
		}
	}
	s.unassigned = left
}

// twoBest returns the two smallest reduced costs of a row and their columns. Of equal ones the second is a free column
// if there is one.
func twoBest(row, price []float64, owner []int32) (best, second float64, a, b int) {
	best, second = math.Inf(1), math.Inf(1)
	price, owner = price[:len(row)], owner[:len(row)]
	for c, x := range row {
		x -= price[c]
		if x > second {
			continue
		}
		switch {
		case x < best:
			best, second, a, b = x, best, c, a
		case x < second || owner[b] >= 0:
			second, b = x, c
		}
	}
	return best, second, a, b
}

// settledColumn is a column and its distance from the row that is inserted.
type settledColumn struct {
	column   int32
	distance float64
}

// augment gives row r a column along the shortest path by reduced costs. The path ends at a free column, or at a row,
// perhaps r, that stays without a column at the price without.
func (s *Solver) augment(r int32, cols int, cost []float64, without float64) {
	distance, before := s.distance[:cols], s.reachedFrom[:cols]
	price, owner := s.v[:cols], s.row[:cols]
	// Step 1: the distances of all columns from r.
	low, at := math.Inf(1), 0
	for c, x := range cost[int(r)*cols:][:cols] {
		x -= price[c]
		distance[c] = x
		if x <= low && (x < low || owner[at] >= 0 && owner[c] < 0) {
			low, at = x, c
		}
	}
	s.column[r] = -1
	if low >= without {
		return
	}
	for c := range before {
		before[c] = r
	}
	// Step 2: Dijkstra's algorithm, until the nearest column is free or no nearer than staying without a column.
	settled := s.settled[:0]
	length, end := without, int32(-1)
	for low < length {
		k := owner[at]
		if k < 0 {
			length, end = low, int32(at)
			break
		}
		settled = append(settled, settledColumn{int32(at), low})
		distance[at] = math.NaN() // NaN is neither shorter nor longer than anything
		row := cost[int(k)*cols:][:cols]
		past := low
		shift := row[at] - price[at] - low
		if l := without - shift; l < length {
			length, end = l, int32(at)
		}
		low = math.Inf(1)
		for c, x := range row {
			d := distance[c]
			if x = x - price[c] - shift; x < d {
				d = max(x, past) // rounding must not lead back
				distance[c], before[c] = d, k
			}
			if d <= low && (d < low || owner[at] >= 0 && owner[c] < 0) {
				low, at = d, c
			}
		}
	}
	s.settled = settled
	// Step 3: the prices of settled columns fall.
	for _, p := range settled {
		price[p.column] += min(p.distance-length, 0)
	}
	if end < 0 {
		return
	}
	// Step 4: the rows along the path exchange columns.
	if k := owner[end]; k >= 0 {
		s.column[k] = -1
	}
	for {
		k := before[end]
		owner[end] = k
		end, s.column[k] = s.column[k], end
		if k == r {
			return
		}
	}
}
