package assign

// first turns an optimal assignment into the first of all that are as good: those are the ones that use only pairs
// without reduced cost and leave free only rows and columns whose price is zero. Row by row it tries lower columns; the
// column's owner must then find another place, by driving out a later row, and so on, until the one that the row leaves
// is taken. What is free belongs to nobody, a row of its own, at number rows, which any column without a price suits.
func (s *Solver) lexicographicFirst(rows, cols int, cost []float64, tolerance float64) {
	s.seen, s.drivenBy = resized(s.seen, rows+1), resized(s.drivenBy, rows+1)
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
			if s.move(int32(r), int32(c), cols, cost, tolerance) {
				match[r], owner[c] = int32(c), int32(r)
				break
			}
		}
	}
}

// move finds the owner of column c another place for the sake of row r, and carries it out.
func (s *Solver) move(r, c int32, cols int, cost []float64, tolerance float64) bool {
	match, owner := s.column, s.row
	nobody := int32(len(match))
	had := match[r]
	queue := s.queue[:0]
	left := c // by nobody, once it is met
	meet := func(next, by int32) {
		if next > r && s.seen[next] != r+1 { // whoever was met before is met in vain
			s.seen[next], s.drivenBy[next] = r+1, by
			queue = append(queue, next)
		}
	}
	if o := owner[c]; o >= 0 {
		meet(o, -1)
	} else {
		meet(nobody, -1)
	}
	found := false
search:
	for at := 0; at < len(queue); at++ {
		k := queue[at]
		if k == nobody {
			for c, p := range s.v {
				if p < -tolerance {
					continue
				}
				if int32(c) == had {
					s.shift(k, had, left)
					found = true
					break search
				}
				if owner[c] >= 0 {
					meet(owner[c], k)
				}
			}
			continue
		}
		if len(match) > cols && s.u[k] >= -tolerance { // the row may go without
			if had < 0 {
				s.shift(k, -1, left)
				found = true
				break search
			}
			if s.seen[nobody] != r+1 {
				s.seen[nobody] = r + 1
				for other := r + 1; other < nobody; other++ {
					if match[other] < 0 {
						meet(other, k)
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
				s.shift(k, had, left)
				found = true
				break search
			}
			if owner[c] >= 0 {
				meet(owner[c], k)
			} else if s.seen[nobody] != r+1 {
				left = int32(c)
				meet(nobody, k)
			}
		}
	}
	s.queue = queue[:0]
	return found
}

// shift moves row k to a place and every row on the way to it to the place of the one after.
func (s *Solver) shift(k, place, left int32) {
	match, owner := s.column, s.row
	nobody := int32(len(match))
	for k >= 0 {
		old := left
		if k == nobody {
			owner[place] = -1
		} else {
			old, match[k] = match[k], place
			if place >= 0 {
				owner[place] = k
			}
		}
		place, k = old, s.drivenBy[k]
	}
}
