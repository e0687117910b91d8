package tidal

import "gonum.org/v1/gonum/floats"

// bandMatrix is a square matrix whose entries lie at most below and above of its diagonal.
type bandMatrix struct {
	n, below, above int
	rows            []float64 // (below+1+above) entries by row; column c of row r is at c-r+below
}

func newBandMatrix(n, below, above int) *bandMatrix {
	return &bandMatrix{n: n, below: below, above: above, rows: make([]float64, n*(below+1+above))}
}

func (m *bandMatrix) row(r int) []float64 {
	w := m.below + 1 + m.above
	return m.rows[r*w : (r+1)*w]
}

// solve replaces each right-hand side by its solution, by elimination without row exchanges. That is stable here,
// because the matrices are the identity less probabilities and so diagonally dominant (Golub and Van Loan §4.1). It
// destroys m and takes O(n below above) time.
func (m *bandMatrix) solve(right ...[]float64) {
	for c := range m.n {
		pivot := m.row(c)
		// What stands behind the pivot, without zeros at the end.
		behind := pivot[m.below+1 : m.below+1+min(m.above, m.n-1-c)]
		for len(behind) > 0 && behind[len(behind)-1] == 0 {
			behind = behind[:len(behind)-1]
		}
		for r := c + 1; r <= min(c+m.below, m.n-1); r++ {
			row := m.row(r)
			f := row[c-r+m.below] / pivot[m.below]
			if f == 0 {
				continue
			}
			from := c + 1 - r + m.below
			floats.AddScaled(row[from:from+len(behind)], -f, behind)
			for _, b := range right {
				b[r] -= f * b[c]
			}
		}
	}
	for c := m.n - 1; c >= 0; c-- {
		row := m.row(c)
		for _, b := range right {
			x := b[c]
			for k := c + 1; k <= min(c+m.above, m.n-1); k++ {
				x -= row[k-c+m.below] * b[k]
			}
			b[c] = x / row[m.below]
		}
	}
}
