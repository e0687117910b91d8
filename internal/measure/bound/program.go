package bound

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/serving"
)

// program is the linear program while it is built.
type program struct {
	milp.Program
	w       *Model
	kinds   []kind
	start   serving.Time
	width   time.Duration
	windows int
	classes []class

	served  [][]served      // by class: a column for each path and split of the time
	groups  map[group]int   // row
	time    [][][2]int      // by kind and window: rows of threads and of accelerators; -1 for none
	holds   map[holding]int // columns of r
	holders map[holding]int // rows of what a variant's machines have
	memory  [][]int         // by kind and window: row; -1 where memory does not bind
	rented  [][]int         // by kind and window: column; -1 where machines are owned
	binds   []bool          // by kind: whether its memory holds less than everything
	rates   rateTable
	classOf []int // by query; -1 for one without time
	// Only by foresight:
	crowds   []crowd // by AppID
	crowded  []int   // by query; nil where queries are not told apart by it
	steps    int     // into which the time to a deadline is divided between stages
	splitsOf map[string][][]int
}

// served is a column: queries of a class by one path, in one split of their time.
type served struct {
	column   int
	path     int
	accuracy float64 // that of the answer or, for a second one, by how much it is better
	second   bool
}

// group is work that the same machines do at the same rates in the same windows.
type group struct {
	variant  serving.VariantID
	from, to int
	rates    int // into rateTable.by
}

type holding struct {
	kind, window int
	variant      serving.VariantID
}

// window returns the window that t lies in.
func (p *program) window(t serving.Time) int {
	return min(max(int(t.Sub(p.start)/p.width), 0), p.windows-1)
}

// newProgram cuts the time of the queries into windows and the queries into classes.
func newProgram(w *Model, queries []Query, o Options) *program {
	p := &program{
		w: w, kinds: w.kinds(), groups: make(map[group]int),
		holds: make(map[holding]int), holders: make(map[holding]int), rates: newRateTable(),
		splitsOf: make(map[string][][]int),
	}
	p.Maximize = true
	end, longest := serving.Time(math.MinInt64), time.Duration(0)
	p.start = serving.Never
	for i := range queries {
		p.start, end = min(p.start, queries[i].Arrived), max(end, queries[i].Deadline)
		longest = max(longest, queries[i].Deadline.Sub(queries[i].Arrived))
	}
	if len(queries) == 0 {
		p.start, end = 0, 1
	}
	span := max(end.Sub(p.start), 1)
	p.windows = max(1, min(o.windows(), int(span*time.Duration(o.perDeadline())/max(longest, 1))))
	p.width = span/time.Duration(p.windows) + 1
	if o.Foresight {
		p.steps = o.steps()
		if !o.alike {
			p.findCrowding(queries)
		}
	}
	p.classify(queries, o.classes())
	if o.Foresight && w.LongTime == nil { // what meets in a batch is not followed by length
		p.findCrowds(queries)
	}
	return p
}

// build adds the columns and rows that both forms of the program have. value returns the objective of a query of an app
// that is served with an accuracy.
func (p *program) build(value func(a serving.AppID, accuracy float64) float64) {
	p.machines()
	paths := make(map[key][]path)
	for c := range p.classes {
		x := &p.classes[c]
		k := key{app: x.app, variant: x.variant, minAccuracy: x.minAccuracy}
		if _, ok := paths[k]; !ok {
			paths[k] = p.w.paths(x.app, x.minAccuracy, x.variant)
		}
		p.serve(x, paths[k], value)
	}
}

// machines adds the rows of the machines' time and memory.
func (p *program) machines() {
	for k := range p.kinds {
		x := &p.kinds[k]
		p.binds = append(p.binds, p.w.binds(x.device))
		var times [][2]int
		var memory, rented []int
		for range p.windows {
			row := [2]int{p.Row(-milp.Inf, x.machines*p.width.Seconds()), -1}
			if p.w.Spec.DeviceTypes[x.device].Accelerators > 0 {
				row[1] = p.Row(-milp.Inf, x.machines*p.width.Seconds())
			}
			times, rented = append(times, row), append(rented, -1)
			memory = append(memory, -1)
			if p.binds[k] {
				bytes := float64(p.w.Spec.DeviceTypes[x.device].MemoryBytes)
				memory[len(memory)-1] = p.Row(-milp.Inf, x.machines*bytes/mebi)
			}
		}
		p.time, p.memory, p.rented = append(p.time, times), append(p.memory, memory), append(p.rented, rented)
	}
}

// mebi scales bytes, so that the numbers of the program lie within some orders of magnitude.
const mebi = 1 << 20

// binds reports whether a machine's memory holds less than all variants.
func (w *Model) binds(d serving.DeviceTypeID) bool {
	limit, sum := w.Spec.DeviceTypes[d].MemoryBytes, int64(0)
	if limit <= 0 {
		return false
	}
	for v := range w.Spec.Variants {
		if !w.Spec.Variants[v].Retired {
			sum += w.memory(serving.VariantID(v))
		}
	}
	return sum > limit
}

// serve adds the columns of a class: its queries by path and split of their time, and the work that they make.
func (p *program) serve(x *class, paths []path, value func(a serving.AppID, accuracy float64) float64) {
	var list []served
	var once []milp.Term
	var rows []int
	for n := range paths {
		accuracy := p.w.accuracy(&paths[n], x.items)
		for _, split := range p.splits(x, &paths[n]) {
			rows = rows[:0]
			for at, rates := range split {
				if x.items[at] > 0 {
					rows = append(rows, p.group(paths[n].variants[at], x, rates))
				}
			}
			c := p.Column(milp.Column{Objective: value(x.app, accuracy), Upper: x.count})
			once = append(once, milp.Term{Column: c, Coef: 1})
			for at := range split {
				if x.items[at] > 0 {
					p.term(rows[0], c, x.items[at])
					rows = rows[1:]
				}
			}
			list = append(list, served{column: c, path: n, accuracy: accuracy})
		}
	}
	list = p.improve(x, paths, list, value)
	if len(once) > 1 {
		p.Row(-milp.Inf, x.count, once...)
	}
	p.served = append(p.served, list)
}

func (p *program) term(row, column int, coef float64) {
	p.Rows[row].Terms = append(p.Rows[row].Terms, milp.Term{Column: column, Coef: coef})
}

// group returns the row of a variant's work for a class at the given rates. Classes with the same rates share a group.
// Mostly all sizes do, since small queries fill the same batches as large ones.
func (p *program) group(v serving.VariantID, x *class, rates int) (row int) {
	g := group{v, x.from, x.to, rates}
	if row, ok := p.groups[g]; ok {
		return row
	}
	row = p.Row(-milp.Inf, 0) // items of the queries - items that windows give <= 0
	p.groups[g] = row
	for w := x.from; w <= x.to; w++ {
		n := 0
		for k := range p.kinds {
			for _, u := range p.kinds[k].uses {
				if rate := p.rates.by[rates][n]; rate > 0 {
					p.spend(row, k, w, v, u, rate)
				}
				n++
			}
		}
	}
	return row
}

// spend adds the column of the seconds that machines of a kind spend on a group in a window, as a use of them.
func (p *program) spend(row, k, w int, v serving.VariantID, u use, rate float64) {
	z := p.Column(milp.Column{Upper: milp.Inf})
	p.term(row, z, -rate)
	rows := p.time[k][w]
	p.term(rows[0], z, u.threads)
	if rows[1] >= 0 && u.percent > 0 {
		p.term(rows[1], z, u.percent)
	}
	if p.binds[k] {
		p.hold(k, w, v, z, u)
	}
}

// hold adds the rows by which machines that run a variant hold it in memory.
func (p *program) hold(k, w int, v serving.VariantID, z int, u use) {
	h := holding{k, w, v}
	row, ok := p.holders[h]
	if !ok {
		r := p.Column(milp.Column{Upper: p.kinds[k].machines})
		p.holds[h] = r
		row = p.Row(-milp.Inf, 0)
		p.holders[h] = row
		p.term(row, r, -p.width.Seconds())
		p.term(p.memory[k][w], r, float64(p.w.memory(v))/mebi)
	}
	// A part runs beside others on its machine, each with a copy of the variant; its share of the machine counts.
	p.term(row, z, max(u.threads, u.percent))
}
