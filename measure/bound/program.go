package bound

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/algo/milp"
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

	served  [][]served      // by class: a column for each path
	groups  map[group]int   // into work
	work    []int           // by group: row
	time    [][][2]int      // by kind and window: rows of threads and of accelerators; -1 for none
	holds   map[holding]int // columns of r
	holders map[holding]int // rows of what a variant's machines have
	memory  [][]int         // by kind and window: row; -1 where memory does not bind
	rented  [][]int         // by kind and window: column; -1 where machines are owned
	binds   []bool          // by kind: whether its memory holds less than everything
	rates   []rated
}

// served is a column: queries of a class by one path.
type served struct {
	column   int
	path     int
	accuracy float64
}

// group is work that the same machines do at the same rates in the same windows.
type group struct {
	variant  serving.VariantID
	from, to int
	rates    int // index of what machines give of it
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
		holds: make(map[holding]int), holders: make(map[holding]int),
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
	// Windows shorter than the time to a deadline tighten the bound little and take much time.
	p.windows = max(1, min(o.windows(), int(span/max(longest, 1))))
	p.width = span/time.Duration(p.windows) + 1
	p.classify(queries, o.classes())
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

// serve adds the columns of a class: its queries by path, and the work that they make.
func (p *program) serve(x *class, paths []path, value func(a serving.AppID, accuracy float64) float64) {
	var list []served
	var once []milp.Term
	for n := range paths {
		var groups []int
		possible := true
		for at, v := range paths[n].variants {
			size := 1
			if at == 0 {
				size = x.size
			}
			g, ok := p.group(v, x, size)
			possible = possible && (ok || x.items[at] == 0)
			groups = append(groups, g)
		}
		if !possible {
			continue
		}
		accuracy := p.w.accuracy(&paths[n], x.items)
		c := p.Column(milp.Column{Objective: value(x.app, accuracy), Upper: x.count})
		once = append(once, milp.Term{Column: c, Coef: 1})
		for at, g := range groups {
			if x.items[at] > 0 {
				p.term(p.work[g], c, x.items[at])
			}
		}
		list = append(list, served{c, n, accuracy})
	}
	if len(once) > 1 {
		p.Row(-milp.Inf, x.count, once...)
	}
	p.served = append(p.served, list)
}

func (p *program) term(row, column int, coef float64) {
	p.Rows[row].Terms = append(p.Rows[row].Terms, milp.Term{Column: column, Coef: coef})
}

// group returns the group of a variant's work for a class; ok is false when no machine does it in time. Classes with
// the same rates share a group. Mostly all sizes do, since small queries fill the same batches as large ones.
func (p *program) group(v serving.VariantID, x *class, size int) (at int, ok bool) {
	rates := p.ratesOf(v, size, x.within)
	if rates < 0 {
		return -1, false
	}
	g := group{v, x.from, x.to, rates}
	if at, ok := p.groups[g]; ok {
		return at, true
	}
	at = len(p.work)
	p.groups[g] = at
	row := p.Row(-milp.Inf, 0) // items of the queries - items that windows give <= 0
	p.work = append(p.work, row)
	for w := x.from; w <= x.to; w++ {
		n := 0
		for k := range p.kinds {
			for _, u := range p.kinds[k].uses {
				if rate := p.rates[rates].by[n]; rate > 0 {
					p.spend(row, k, w, v, u, rate)
				}
				n++
			}
		}
	}
	return at, true
}

// rated is a variant's rates for queries of at least a size within at most a time. Rates are by kind, then use.
type rated struct {
	variant serving.VariantID
	size    int
	within  time.Duration
	by      []float64
	same    int // the entry whose rates are the same
}

// ratesOf returns an index into rates; -1 where all are 0.
func (p *program) ratesOf(v serving.VariantID, size int, within time.Duration) int {
	for i := range p.rates {
		if r := &p.rates[i]; r.variant == v && r.size == size && r.within == within {
			return r.same
		}
	}
	r := rated{variant: v, size: size, within: within, same: -1}
	for k := range p.kinds {
		for _, u := range p.kinds[k].uses {
			rate := 0.0
			if p.w.fits(v, u.device) && p.w.fits(v, p.kinds[k].device) {
				rate = p.w.Rate(v, u.device, size, within)
			}
			r.by = append(r.by, rate)
		}
	}
	if slices.ContainsFunc(r.by, func(x float64) bool { return x > 0 }) {
		r.same = len(p.rates)
		for i := range p.rates {
			if o := &p.rates[i]; o.variant == v && slices.Equal(o.by, r.by) {
				r.same = o.same
				break
			}
		}
	}
	p.rates = append(p.rates, r)
	return r.same
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

// Options are the resolution of a bound. Finer bounds are tighter and take more time.
type Options struct {
	// Windows is the most windows that time is divided into; 0 means 24. More windows are tighter if the load changes.
	Windows int
	// Classes is the most sizes that the queries of an app are divided into; 0 means 12.
	Classes int
	// Terms is how many terms the program may have; 0 means 500,000. A larger one is made coarser: with half as many
	// windows, and then with half as many sizes. It is a bound all the same.
	Terms int
}

func (o Options) windows() int {
	if o.Windows <= 0 {
		return 24
	}
	return o.Windows
}

func (o Options) terms() int {
	if o.Terms <= 0 {
		return 500_000
	}
	return o.Terms
}

func (o Options) classes() int {
	if o.Classes <= 0 {
		return 12
	}
	return o.Classes
}
