package assign

// lexicographicFirst turns an optimal assignment into the lexicographically first one of the same cost. Those are the
// assignments that use only pairs without reduced cost and leave free only rows and columns whose price is zero.
//
// Row by row it tries lower columns. The owner of such a column must find another column, from a later row, which must
// find another one in turn, and so on, until a row takes the column that the first row has left. Free columns belong to
// the virtual row len(match), which may own any column without a price.
func (s *Solver) lexicographicFirst(rows, cols int, cost []float64, tolerance float64) {
	s.seen, s.takenBy = resized(s.seen, rows+1), resized(s.takenBy, rows+1)
	clear(s.seen)
	match, owner, v := s.column, s.row, s.v[:cols]
	for r := range match {
		end := int(match[r])
		if end < 0 {
			end = cols
		}
		row := cost[r*cols:][:cols]
		limit := s.u[r] + tolerance
		for c, o := range owner[:end] {
			if row[c]-v[c] > limit || uint32(o) < uint32(r) {
				continue
			}
			if s.reassign(int32(r), int32(c), cols, cost, tolerance) {
				match[r], owner[c] = int32(c), int32(r)
				break
			}
		}
	}
}

// reassign gives column c to row r if its owner can find another column, by breadth-first search over the rows after r.
// It reports whether it can, and if so makes the moves.
func (s *Solver) reassign(r, c int32, cols int, cost []float64, tolerance float64) bool {
	match, owner := s.column, s.row
	virtual := int32(len(match))
	had := match[r]
	queue := s.queue[:0]
	left := c // the column that the virtual row gives up, once it is visited
	enqueue := func(next, by int32) {
		if next > r && s.seen[next] != r+1 { // a row that was visited before led nowhere
			s.seen[next], s.takenBy[next] = r+1, by
			queue = append(queue, next)
		}
	}
	if o := owner[c]; o >= 0 {
		enqueue(o, -1)
	} else {
		enqueue(virtual, -1)
	}
	found := false
search:
	for at := 0; at < len(queue); at++ {
		k := queue[at]
		if k == virtual {
			for c, p := range s.v {
				if p < -tolerance {
					continue
				}
				if int32(c) == had {
					s.applyMoves(k, had, left)
					found = true
					break search
				}
				if owner[c] >= 0 {
					enqueue(owner[c], k)
				}
			}
			continue
		}
		if len(match) > cols && s.u[k] >= -tolerance { // the row may stay without a column
			if had < 0 {
				s.applyMoves(k, -1, left)
				found = true
				break search
			}
			if s.seen[virtual] != r+1 {
				s.seen[virtual] = r + 1
				for other := r + 1; other < virtual; other++ {
					if match[other] < 0 {
						enqueue(other, k)
					}
				}
			}
		}
		row := cost[int(k)*cols:][:cols]
		limit := s.u[k] + tolerance
		for c, x := range row {
			if x-s.v[c] > limit {
				continue
			}
			if int32(c) == had {
				s.applyMoves(k, had, left)
				found = true
				break search
			}
			if owner[c] >= 0 {
				enqueue(owner[c], k)
			} else if s.seen[virtual] != r+1 {
				left = int32(c)
				enqueue(virtual, k)
			}
		}
	}
	s.queue = queue[:0]
	return found
}

// applyMoves moves row k to column place and every row on the way to k to the column of the next one. left is the
// column that the virtual row gives up.
func (s *Solver) applyMoves(k, place, left int32) {
	match, owner := s.column, s.row
	virtual := int32(len(match))
	for k >= 0 {
		old := left
		if k == virtual {
			owner[place] = -1
		} else {
			old, match[k] = match[k], place
			if place >= 0 {
				owner[place] = k
			}
		}
		place, k = old, s.takenBy[k]
	}
}
