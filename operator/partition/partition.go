package partition

import (
	"cmp"
	"hash/fnv"
	"maps"
	"math"
	"slices"
)

// App is what is given.
type App struct {
	Name string
	Load float64 // in any unit that adds up, such as queries/s times their run time; at least 0
	Rate float64 // queries/s that a dispatcher would have to answer
	// Whole is never given to several cells, as where the order of queries counts.
	Whole bool
}

// Cell is what a cell has been given.
type Cell struct {
	Apps   []string         `json:"apps"`             // by name
	Most   map[string]int32 `json:"most,omitempty"`   // machines by type; only those it may have
	Budget float64          `json:"budget,omitempty"` // $/h; 0 where the fleet has none
	// Shares are the parts of apps that several cells have, by name. Those of an app add up to 1 over its cells.
	Shares map[string]float64 `json:"shares,omitempty"`
}

// Fleet is what there is to divide.
type Fleet struct {
	Dispatchers int32
	Apps        []App
	Most        map[string]int32   // machines by type
	Budget      float64            // $/h; 0 for none
	Prices      map[string]float64 // $/h of a machine that is paid for while it is used, by type
	// CellRate is how many queries/s one dispatcher is given at most; 0 for any number. An app with more is given to
	// several cells, each with machines of its own.
	CellRate float64
}

// How uneven a partition may be.
const (
	even  = 1.25 // a cell is given apps up to this multiple of the mean load
	moved = 1.5  // apps are moved away from a cell above this multiple
	drift = 0.25 // machines and budget are divided anew when a cell's part is off by this share of what it should be
	idle  = 0.02 // of the mean load that an app counts for at least: it is there, and may wake
	joins = 0.7  // an app has fewer parts again once fewer would do at this share of what a dispatcher is given
)

// Partition divides a fleet. before is the partition in force, by cell; nil for none. It returns at most as many cells
// as there are dispatchers, apps and machines, and as can each pay for a machine.
func Partition(f *Fleet, before []Cell) []Cell {
	parts := f.parts(before)
	loads := f.loads()
	for n := f.cells(parts); n > 0; n-- {
		for name := range parts {
			parts[name] = min(parts[name], n)
		}
		out := make([]Cell, n)
		total := f.apps(out, before, loads, parts)
		f.machines(out, before, total)
		if f.budget(out, before, total) || n == 1 {
			return out
		}
	}
	return nil
}

// room is how many cells there can be.
func (f *Fleet) room() int {
	var machines int64
	for _, m := range f.Most {
		machines += int64(max(m, 0))
	}
	return int(min(int64(max(f.Dispatchers, 1)), machines))
}

// cells is the number of cells.
func (f *Fleet) cells(parts map[string]int) int {
	all := 0
	for _, k := range parts {
		all += k
	}
	return min(f.room(), all)
}

// parts is how many cells each app is to have.
func (f *Fleet) parts(before []Cell) map[string]int {
	had := make(map[string]int)
	for _, c := range before {
		for _, name := range c.Apps {
			had[name]++
		}
	}
	out := make(map[string]int, len(f.Apps))
	for _, a := range f.Apps {
		k := f.needed(a, 1)
		if was := had[a.Name]; was > k {
			k = max(k, min(was, f.needed(a, joins))) // what need not change stays
		}
		out[a.Name] = k
	}
	return out
}

// needed is how many cells an app needs where a dispatcher is given a share of what it may be given.
func (f *Fleet) needed(a App, share float64) int {
	most := f.room()
	bound, rate := number(f.CellRate)*share, number(a.Rate)
	if a.Whole || bound == 0 || rate <= bound || most < 2 {
		return 1
	}
	return int(min(math.Ceil(rate/bound), float64(most)))
}

// loads are those of all apps, none of which counts for nothing.
func (f *Fleet) loads() map[string]float64 {
	out := make(map[string]float64, len(f.Apps))
	var sum float64
	for _, a := range f.Apps {
		l := number(a.Load)
		out[a.Name] = l
		sum += l
	}
	if sum == 0 {
		sum = float64(len(f.Apps))
	}
	least := sum / float64(len(f.Apps)) * idle
	for name, l := range out {
		out[name] = max(l, least)
	}
	return out
}

// number is a figure that can be added up: 0 for one that makes no sense.
func number(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
		return 0
	}
	return x
}

// apps divides the apps and returns the load of each cell.
func (f *Fleet) apps(out, before []Cell, loads map[string]float64, parts map[string]int) []float64 {
	d := newDivision(f, out, loads, parts)
	for at := range min(len(before), len(out)) {
		for _, name := range before[at].Apps {
			if _, ok := loads[name]; ok && !d.has(at, name) {
				d.give(name, at)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(loads)) {
		d.join(name)
	}
	// The largest first: they have the least choice.
	var waiting []string
	for name := range loads {
		for range parts[name] - d.given[name] {
			waiting = append(waiting, name)
		}
	}
	slices.SortFunc(waiting, func(a, b string) int {
		return cmp.Or(cmp.Compare(d.loads[b], d.loads[a]), cmp.Compare(a, b))
	})
	for _, name := range waiting {
		d.give(name, d.place(name))
	}
	for at := range out {
		if d.total[at] > max(d.mean*moved, d.largest) || d.rate[at] > d.most*moved/even {
			d.relieve(at)
		}
	}
	for at := range out {
		if len(out[at].Apps) == 0 {
			d.fill(at)
		}
	}
	for at := range out {
		slices.Sort(out[at].Apps)
		for _, name := range out[at].Apps {
			if k := d.given[name]; k > 1 {
				if out[at].Shares == nil {
					out[at].Shares = make(map[string]float64)
				}
				out[at].Shares[name] = 1 / float64(k)
			}
		}
	}
	return d.total
}

// division is the work of dividing apps.
type division struct {
	out           []Cell
	total, rate   []float64          // by cell
	loads, rates  map[string]float64 // of one part of an app
	parts, given  map[string]int     // that an app is to have, and has
	mean, largest float64            // load of a cell, of a part
	bound, most   float64            // load and queries/s up to which a cell is given apps
}

func newDivision(f *Fleet, out []Cell, loads map[string]float64, parts map[string]int) *division {
	d := &division{out: out, total: make([]float64, len(out)), rate: make([]float64, len(out)), parts: parts,
		loads: make(map[string]float64), rates: make(map[string]float64), given: make(map[string]int),
		most: math.Inf(1)}
	if x := number(f.CellRate); x > 0 {
		d.most = x
	}
	var sum float64
	for _, a := range f.Apps { // in their order: sums of numbers depend on it
		l := loads[a.Name] / float64(parts[a.Name])
		d.loads[a.Name], d.rates[a.Name] = l, number(a.Rate)/float64(parts[a.Name])
		sum += loads[a.Name]
		d.largest = max(d.largest, l)
	}
	d.mean = sum / float64(len(out))
	d.bound = max(d.mean*even, d.largest)
	return d
}

func (d *division) has(at int, name string) bool { return slices.Contains(d.out[at].Apps, name) }

func (d *division) give(name string, at int) {
	d.out[at].Apps = append(d.out[at].Apps, name)
	d.total[at] += d.loads[name]
	d.rate[at] += d.rates[name]
	d.given[name]++
}

func (d *division) take(name string, at int) {
	d.out[at].Apps = slices.DeleteFunc(d.out[at].Apps, func(x string) bool { return x == name })
	d.total[at] -= d.loads[name]
	d.rate[at] -= d.rates[name]
	d.given[name]--
}

// join takes an app that has too many parts away from the cells with most load.
func (d *division) join(name string) {
	for d.given[name] > d.parts[name] {
		from := -1
		for at := range d.out {
			if d.has(at, name) && (from < 0 || d.total[at] >= d.total[from]) {
				from = at
			}
		}
		d.take(name, from)
	}
}

// fits reports whether a cell has room for a part of an app.
func (d *division) fits(name string, at int) bool {
	return d.total[at]+d.loads[name] <= d.bound && d.rate[at]+d.rates[name] <= d.most
}

// place is the cell for a part of an app: by rendezvous hashing the first that has room, so that it depends on the
// others as little as can be; where none has, the one with least load. Cells that have the app are left out.
func (d *division) place(name string) int {
	best, least := -1, -1
	var score uint64
	for at := range d.out {
		if d.has(at, name) {
			continue
		}
		if least < 0 || d.total[at] < d.total[least] {
			least = at
		}
		if s := hash(name, at); d.fits(name, at) && (best < 0 || s > score) {
			best, score = at, s
		}
	}
	if best < 0 {
		return least
	}
	return best
}

// relieve moves apps away from a cell until its load and its queries/s are in bounds, where others have room: the
// fewest that do it.
func (d *division) relieve(at int) {
	for d.total[at] > d.bound || d.rate[at] > d.most {
		sizes, over := d.loads, d.total[at]-d.bound
		if over <= 0 {
			sizes, over = d.rates, d.rate[at]-d.most
		}
		names := slices.SortedFunc(slices.Values(d.out[at].Apps), func(a, b string) int {
			return cmp.Or(cmp.Compare(sizes[a], sizes[b]), cmp.Compare(a, b))
		})
		// The smallest that is enough, else the largest.
		first, _ := slices.BinarySearchFunc(names, over, func(name string, x float64) int {
			return cmp.Compare(sizes[name], x)
		})
		order := slices.Clone(names[first:])
		for i := first - 1; i >= 0; i-- {
			order = append(order, names[i])
		}
		did := false
		for _, name := range order {
			d.take(name, at)
			if to := d.place(name); to != at && d.fits(name, to) {
				d.give(name, to)
				did = true
				break
			}
			d.give(name, at)
		}
		if !did {
			return
		}
	}
}

// fill gives an app to a cell without any: the one of those whose cell keeps another that likes it best.
func (d *division) fill(at int) {
	from, which := -1, ""
	var score uint64
	for other := range d.out {
		if len(d.out[other].Apps) < 2 {
			continue
		}
		for _, name := range d.out[other].Apps {
			if s := hash(name, at); from < 0 || s > score {
				from, which, score = other, name, s
			}
		}
	}
	if from >= 0 {
		d.take(which, from)
		d.give(which, at)
	}
}

// hash is the score of an app at a cell.
func hash(name string, at int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // it has no errors
	x := h.Sum64() ^ (uint64(at)+1)*0x9e3779b97f4a7c15
	// The end of splitmix64: the bits of a short text are not mixed enough by the sum alone.
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
