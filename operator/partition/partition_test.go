package partition

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// random returns a fleet.
func random(r *rand.Rand) *Fleet {
	f := &Fleet{Dispatchers: 1 + r.Int32N(8), Most: map[string]int32{}}
	for i := range r.IntN(60) {
		a := App{Name: fmt.Sprintf("app-%d", i), Load: math.Exp(6 * r.NormFloat64() / 3)}
		a.Rate, a.Whole = 50*a.Load*r.Float64(), r.IntN(8) == 0
		f.Apps = append(f.Apps, a)
	}
	for i := range r.IntN(5) {
		f.Most[fmt.Sprintf("type-%d", i)] = r.Int32N(40)
	}
	if r.IntN(2) == 0 {
		f.Budget = 1 + 20*r.Float64()
	}
	if r.IntN(3) > 0 {
		f.CellRate = 1000 * r.Float64()
	}
	return f
}

// holds reports the first property that a partition breaks. before is the partition that it follows from.
func holds(f *Fleet, before, out []Cell) error {
	machines := int32(0)
	for _, n := range f.Most {
		machines += n
	}
	parts, all := f.parts(before), 0
	for _, k := range parts {
		all += k
	}
	if want := min(int(f.Dispatchers), int(machines), all); len(out) != want {
		return fmt.Errorf("%d cells, want %d", len(out), want)
	}
	if len(out) == 0 {
		return nil
	}
	shares := map[string]float64{}
	seen := map[string]int{}
	most, budget := map[string]int32{}, 0.0
	for at, c := range out {
		if len(c.Apps) == 0 || len(c.Most) == 0 {
			return fmt.Errorf("cell %d has %d apps and %d machine types", at, len(c.Apps), len(c.Most))
		}
		if !slices.IsSorted(c.Apps) {
			return fmt.Errorf("cell %d: %v", at, c.Apps)
		}
		for _, a := range c.Apps {
			seen[a]++
			shares[a] += c.Share(a)
		}
		for a := range c.Shares {
			if !slices.Contains(c.Apps, a) {
				return fmt.Errorf("cell %d has a share of %s, which it does not have", at, a)
			}
		}
		if len(slices.Compact(slices.Clone(c.Apps))) != len(c.Apps) {
			return fmt.Errorf("cell %d has an app twice: %v", at, c.Apps)
		}
		for t, n := range c.Most {
			if n <= 0 {
				return fmt.Errorf("cell %d has %d of %s", at, n, t)
			}
			most[t] += n
		}
		budget += c.Budget
	}
	for _, a := range f.Apps {
		if seen[a.Name] != parts[a.Name] || math.Abs(shares[a.Name]-1) > 1e-9 {
			return fmt.Errorf("app %s is given %d times, not %d, with shares of %v in all", a.Name, seen[a.Name],
				parts[a.Name], shares[a.Name])
		}
		if f.CellRate > 0 && !a.Whole && a.Rate/float64(seen[a.Name]) > f.CellRate && seen[a.Name] < len(out) {
			return fmt.Errorf("app %s with %v queries/s is given to %d of %d cells, of which each is given %v", a.Name,
				a.Rate, seen[a.Name], len(out), f.CellRate)
		}
	}
	if len(seen) != len(f.Apps) {
		return fmt.Errorf("%d apps are given, there are %d", len(seen), len(f.Apps))
	}
	for t, n := range f.Most {
		if most[t] != n {
			return fmt.Errorf("%d of %s are given, there are %d", most[t], t, n)
		}
	}
	if math.Abs(budget-f.Budget) > 1e-6 {
		return fmt.Errorf("a budget of %v is given, there is %v", budget, f.Budget)
	}
	return nil
}

// bounded reports a cell of a new partition that has more than it may have. A part goes to the cell with least load
// where none has room, and so to one with at most the mean of those that it can go to.
func bounded(f *Fleet, out []Cell) error {
	loads, parts := f.loads(), f.parts(nil)
	var sum, largest float64
	most := 1
	for name, l := range loads {
		sum += l
		largest = max(largest, l/float64(parts[name]))
		most = max(most, parts[name])
	}
	bound := max(even*sum/float64(len(out)), sum/float64(len(out)-most+1)+largest)
	for at := range out {
		load := 0.0
		for _, name := range out[at].Apps {
			load += loads[name] * out[at].Share(name)
		}
		if load > bound*(1+1e-9) {
			return fmt.Errorf("cell %d has a load of %v, more than %v", at, load, bound)
		}
	}
	return nil
}

func TestDealsHold(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		f := random(r)
		out := Partition(f, nil)
		if err := errors.Join(holds(f, nil, out), bounded(f, out)); err != nil {
			t.Fatalf("%+v: %v", f, err)
		}
		// The same fleet again changes nothing.
		if again := Partition(f, out); !reflect.DeepEqual(again, out) {
			t.Fatalf("%+v: dealt again\n%+v\nbefore\n%+v", f, again, out)
		}
		// A fleet that has changed in any way still has a partition that holds.
		g := random(r)
		if err := holds(g, out, Partition(g, out)); err != nil {
			t.Fatalf("%+v after %+v: %v", g, f, err)
		}
	}
}

// TestLittleMoves changes a fleet a little.
func TestLittleMoves(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		f := random(r)
		f.Dispatchers, f.Most = 4, map[string]int32{"a": 40}
		f.CellRate = 0 // a cell with too many queries/s may be relieved by any change
		for len(f.Apps) < 12 {
			f.Apps = append(f.Apps, App{Name: fmt.Sprintf("more-%d", len(f.Apps)), Load: 1})
		}
		out := Partition(f, nil)
		where := owners(out)

		more := *f
		more.Apps = append(slices.Clone(f.Apps), App{Name: "new"})
		if n := movedApps(where, owners(Partition(&more, out))); n > 0 {
			t.Fatalf("%d apps moved for one that has no load", n)
		}
		less := *f
		less.Apps = slices.Clone(f.Apps[1:])
		if n := movedApps(where, owners(Partition(&less, out))); n > len(f.Apps)/2 {
			t.Fatalf("%d of %d apps moved where one went", n, len(f.Apps))
		}
		noisy := *f
		noisy.Apps = slices.Clone(f.Apps)
		for i := range noisy.Apps {
			noisy.Apps[i].Load *= 0.97 + 0.06*r.Float64()
		}
		again := Partition(&noisy, out)
		if movedApps(where, owners(again)) > 0 {
			continue // a cell that was too heavy can now be relieved
		}
		for at := range again {
			if !maps.Equal(again[at].Most, out[at].Most) {
				t.Fatalf("machines are divided anew for a few percent of load: %v, before %v", again[at].Most,
					out[at].Most)
			}
		}
	}
}

// TestCellLeavesOthersAlone takes a dispatcher away: only its cell's apps move.
func TestCellLeavesOthersAlone(t *testing.T) {
	f := &Fleet{Dispatchers: 4, Most: map[string]int32{"a": 40}}
	for i := range 200 {
		f.Apps = append(f.Apps, App{Name: fmt.Sprintf("app-%d", i), Load: 1})
	}
	out := Partition(f, nil)
	where := owners(out)
	f.Dispatchers = 3
	after := owners(Partition(f, out))
	for name, at := range where {
		if at < 3 && after[name] != at {
			t.Errorf("app %s moved from cell %d to %d, though its cell stays", name, at, after[name])
		}
	}
}

func TestLoadIsSpread(t *testing.T) {
	f := &Fleet{Dispatchers: 4, Most: map[string]int32{"a": 40, "b": 3}, Budget: 8}
	for i := range 400 {
		f.Apps = append(f.Apps, App{Name: fmt.Sprintf("app-%d", i), Load: 1})
	}
	out := Partition(f, nil)
	for at, c := range out {
		if n := len(c.Apps); n > 125 || n < 60 {
			t.Errorf("cell %d has %d of 400 apps", at, n)
		}
	}
	// One app becomes heavier than all others together: it stays, others may leave.
	heavy := out[0].Apps[0]
	for i := range f.Apps {
		if f.Apps[i].Name == heavy {
			f.Apps[i].Load = 600
		}
	}
	after := Partition(f, out)
	if !slices.Contains(after[0].Apps, heavy) {
		t.Errorf("the heavy app moved")
	}
	if after[0].Most["a"] <= out[0].Most["a"] {
		t.Errorf("the heavy cell has %v machines, before %v", after[0].Most, out[0].Most)
	}
	// Three machines of a type go to the three cells with most load.
	n := int32(0)
	for _, c := range after {
		n += c.Most["b"]
	}
	if n != 3 || after[0].Most["b"] == 0 {
		t.Errorf("type b is given as %v", after)
	}
}

func owners(out []Cell) map[string]int {
	m := map[string]int{}
	for at, c := range out {
		for _, a := range c.Apps {
			m[a] = at
		}
	}
	return m
}

// movedApps counts the apps of both partitions whose cell differs.
func movedApps(a, b map[string]int) (n int) {
	for name, at := range a {
		if to, ok := b[name]; ok && to != at {
			n++
		}
	}
	return n
}

// TestPartsStay has one app outgrow a dispatcher, and shrink again.
func TestPartsStay(t *testing.T) {
	f := &Fleet{Dispatchers: 6, Most: map[string]int32{"a": 60}, CellRate: 1000}
	for i := range 30 {
		f.Apps = append(f.Apps, App{Name: fmt.Sprintf("app-%d", i), Load: 1, Rate: 20})
	}
	f.Apps = append(f.Apps, App{Name: "large"})
	large := &f.Apps[len(f.Apps)-1]
	var before []Cell
	for _, step := range []struct {
		rate float64
		want int
	}{{900, 1}, {1100, 2}, {2500, 3}, {2100, 3}, {1950, 3}, {1500, 3}, {1300, 2}, {800, 2},
		{650, 1}, {9000, 6}, {100, 1}} {
		large.Rate, large.Load = step.rate, step.rate/100
		out := Partition(f, before)
		if err := holds(f, before, out); err != nil {
			t.Fatalf("at %v queries/s: %v", step.rate, err)
		}
		var has []int
		for at := range out {
			if slices.Contains(out[at].Apps, "large") {
				has = append(has, at)
			}
		}
		if len(has) != step.want {
			t.Errorf("at %v queries/s it is in cells %v, want %d", step.rate, has, step.want)
		}
		for at := range before { // where the app stays, as many cells as can be keep it
			if slices.Contains(before[at].Apps, "large") && !slices.Contains(has, at) &&
				step.want >= len(partsOf(before)) {
				t.Errorf("at %v queries/s the part of cell %d has moved", step.rate, at)
			}
		}
		if again := Partition(f, out); !reflect.DeepEqual(again, out) {
			t.Errorf("at %v queries/s the same fleet is given otherwise: %+v, before %+v", step.rate, again, out)
		}
		before = out
	}
	large.Whole, large.Rate = true, 9000
	for at, c := range Partition(f, before) {
		if c.Share("large") != 1 {
			t.Errorf("cell %d has a part of an app that stays whole", at)
		}
	}
}

// partsOf are the cells that have the large app.
func partsOf(list []Cell) (out []int) {
	for at := range list {
		if slices.Contains(list[at].Apps, "large") {
			out = append(out, at)
		}
	}
	return out
}

// Share is the cell's part of one of its apps.
func (c *Cell) Share(app string) float64 {
	if x, ok := c.Shares[app]; ok {
		return x
	}
	return 1
}

// Each cell can pay for a machine, as long as the budget has one for each; else there are fewer cells.
func TestEachCellPaysForAMachine(t *testing.T) {
	f := &Fleet{Dispatchers: 3, Most: map[string]int32{"small": 6, "large": 3}, Budget: 5,
		Prices: map[string]float64{"small": 1, "large": 2.5},
		Apps:   []App{{Name: "a", Load: 10}, {Name: "b", Load: 1}, {Name: "c", Load: 1}}}
	before := Partition(f, nil)
	if len(before) != 3 {
		t.Fatalf("%d cells, want 3", len(before))
	}
	sum := 0.0
	for at, c := range before { // 1 for each, and the other 2 by load, 10, 1 and 1 of 12, as whole machines
		want := 1.0
		if slices.Contains(c.Apps, "a") {
			want = 3
		}
		if math.Abs(c.Budget-want) > 1e-9 {
			t.Errorf("cell %d has %v $/h, want %v", at, c.Budget, want)
		}
		sum += c.Budget
	}
	if math.Abs(sum-f.Budget) > 1e-9 {
		t.Errorf("cells have %v $/h, want %v", sum, f.Budget)
	}
	// Cells that have thirds buy three machines of five: the budget is divided anew. What buys five stays.
	for at := range before {
		before[at].Budget = 5.0 / 3
	}
	if five := Partition(f, before); five[0].Budget == before[0].Budget {
		t.Errorf("thirds of 5 $/h stay, which buy three machines: %+v", five)
	}
	before[0].Budget, before[1].Budget, before[2].Budget = 1, 2, 2 // the last has the most load
	if five := Partition(f, before); !reflect.DeepEqual(five, before) {
		t.Errorf("%+v, want what there was: %+v", five, before)
	}
	f.Budget = 2.4
	if two := Partition(f, before); len(two) != 2 || two[0].Budget < 1 || two[1].Budget < 1 {
		t.Errorf("for 2.4 $/h there are the cells %+v, want two with at least 1 $/h", two)
	}
}
