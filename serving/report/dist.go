package report

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// dist is a distribution of durations. It keeps up to limit values, and its percentiles are then exact. Beyond that it
// counts values in a log-linear histogram, whose cells are at most 1/512 of their value wide. A percentile is then the
// middle of its cell, with an error of less than 0.1 %.
type dist struct {
	limit  int
	values []int64
	sorted bool
	cells  *cells
	n      int64
	sum    float64
	max    int64
}

const (
	cellBits = 9 // 512 cells an octave
	octaves  = 64 - cellBits
)

// cells counts values below 512 one by one, and larger ones in 512 cells an octave. An octave is allocated when it is
// needed.
type cells [octaves + 1]*[1 << cellBits]int64

func place(v int64) (octave, cell int) {
	shift := bits.Len64(uint64(v)) - (cellBits + 1)
	if shift < 0 {
		// The first two octaves of cells hold exact values.
		return 0, int(v)
	}
	return shift + 1, int(v>>shift) & (1<<cellBits - 1)
}

// middle returns the middle of the cell that place returns for a value.
func middle(octave, cell int) int64 {
	if octave == 0 {
		return int64(cell)
	}
	shift := octave - 1
	low := int64(cell|1<<cellBits) << shift
	return low + (int64(1)<<shift)/2
}

func (c *cells) add(v, n int64) {
	o, i := place(v)
	if c[o] == nil {
		c[o] = new([1 << cellBits]int64)
	}
	c[o][i] += n
}

func (d *dist) add(v int64) {
	if v < 0 {
		v = 0
	}
	d.n++
	d.sum += float64(v)
	d.max = max(d.max, v)
	if d.cells != nil {
		d.cells.add(v, 1)
		return
	}
	if len(d.values) < d.limit {
		d.values = append(d.values, v)
		d.sorted = false
		return
	}
	d.moveToCells()
	d.cells.add(v, 1)
}

func (d *dist) moveToCells() {
	d.cells = new(cells)
	for _, v := range d.values {
		d.cells.add(v, 1)
	}
	d.values = nil
}

// merge adds all values of o, which does not change.
func (d *dist) merge(o *dist) {
	d.n += o.n
	d.sum += o.sum
	d.max = max(d.max, o.max)
	if d.cells == nil && o.cells == nil && len(d.values)+len(o.values) <= d.limit {
		d.values = append(d.values, o.values...)
		d.sorted = false
		return
	}
	if d.cells == nil {
		d.moveToCells()
	}
	for _, v := range o.values {
		d.cells.add(v, 1)
	}
	if o.cells != nil {
		for i, from := range o.cells {
			if from == nil {
				continue
			}
			if d.cells[i] == nil {
				d.cells[i] = new([1 << cellBits]int64)
			}
			for k, n := range from {
				d.cells[i][k] += n
			}
		}
	}
}

// exact reports whether percentiles are exact.
func (d *dist) exact() bool { return d.cells == nil }

// percentile returns the nearest-rank percentile: the smallest value that at least p per cent of the values do not
// exceed.
func (d *dist) percentile(p float64) time.Duration {
	if d.n == 0 {
		return 0
	}
	rank := int64(math.Ceil(p / 100 * float64(d.n)))
	// Rounding may make p/100*n slightly larger than the whole number that it should be.
	if r := p / 100 * float64(d.n); math.Abs(r-math.Round(r)) < 1e-9*math.Max(1, r) {
		rank = int64(math.Round(r))
	}
	rank = min(max(rank, 1), d.n)
	if d.cells == nil {
		if !d.sorted {
			slices.Sort(d.values)
			d.sorted = true
		}
		return time.Duration(d.values[rank-1])
	}
	if rank == d.n {
		return time.Duration(d.max)
	}
	for o, cells := range d.cells {
		if cells == nil {
			continue
		}
		for i, n := range cells {
			if rank -= n; rank <= 0 {
				return time.Duration(min(middle(o, i), d.max))
			}
		}
	}
	return time.Duration(d.max)
}

func (d *dist) mean() time.Duration {
	if d.n == 0 {
		return 0
	}
	return time.Duration(math.Round(d.sum / float64(d.n)))
}
