package mdp

// Rows is a sparse matrix that is built row by row.
type Rows struct {
	start  []int32 // by row, the index of its first entry; the last is the number of entries
	column []int32
	weight []float64
}

// Add adds a weight to the row that is being built. Weights of the same column add up. A weight of 0 is ignored.
func (r *Rows) Add(column int, weight float64) {
	if weight == 0 {
		return
	}
	r.column = append(r.column, int32(column))
	r.weight = append(r.weight, weight)
}

// End closes the row that is being built.
func (r *Rows) End() {
	if len(r.start) == 0 {
		r.start = append(r.start, 0)
	}
	r.start = append(r.start, int32(len(r.column)))
}

// Len returns the number of closed rows.
func (r *Rows) Len() int { return max(len(r.start)-1, 0) }

// Row returns the columns and weights of a closed row, in the order in which they were added. The slices belong to r
// and must not be changed.
func (r *Rows) Row(i int) (columns []int32, weights []float64) {
	from, to := r.start[i], r.start[i+1]
	return r.column[from:to], r.weight[from:to]
}

// Dot returns the product of a row with v, which is by column.
func (r *Rows) Dot(i int, v []float64) float64 {
	columns, weights := r.Row(i)
	weights = weights[:len(columns)]
	// Two sums: an addition waits for the one before it.
	a, b := 0.0, 0.0
	k := 0
	for ; k+1 < len(columns); k += 2 {
		a += weights[k] * v[columns[k]]
		b += weights[k+1] * v[columns[k+1]]
	}
	if k < len(columns) {
		a += weights[k] * v[columns[k]]
	}
	return a + b
}

// Scatter adds x times a row to out, which is by column.
func (r *Rows) Scatter(i int, x float64, out []float64) {
	columns, weights := r.Row(i)
	for k, c := range columns {
		out[c] += x * weights[k]
	}
}
