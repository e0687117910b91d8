package highs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
)

var shared = sync.OnceValues(func() (*Solver, error) { return New(Options{CacheDir: DefaultCacheDir()}) })

func solver(t testing.TB) *Solver {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func solve(t testing.TB, p *milp.Program, l milp.Limits) *milp.Solution {
	t.Helper()
	out, err := solver(t).Solve(context.Background(), p, l)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The module that is embedded is the one of the pinned package.
func TestEmbeddedModule(t *testing.T) {
	wasm, err := os.ReadFile(filepath.Join("..", "..", "node_modules", "highs", "build", "highs.wasm"))
	if err != nil {
		t.Skip("node_modules is not there; the checksum of what is embedded is checked by New in every test")
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(wasm)); got != checksum {
		t.Errorf("node_modules has a module with checksum %s, embedded is %s (version %s): run go generate "+
			"./solver/highs", got, checksum, Version)
	}
}

func TestStatuses(t *testing.T) {
	one := func(c milp.Column, rows ...milp.Row) *milp.Program {
		return &milp.Program{Maximize: true, Columns: []milp.Column{c}, Rows: rows}
	}
	at := []milp.Term{{Column: 0, Coef: 2}}
	for _, c := range []struct {
		name string
		p    *milp.Program
		want milp.Status
		x    float64
	}{
		{
			"optimal", one(milp.Column{Objective: 1, Upper: 9, Integer: true},
				milp.Row{Lower: -milp.Inf, Upper: 7, Terms: at}), milp.Optimal, 3,
		},
		{
			"linear", one(milp.Column{Objective: 1, Upper: 9}, milp.Row{Lower: -milp.Inf, Upper: 7, Terms: at}),
			milp.Optimal, 3.5,
		},
		{
			"infeasible", one(milp.Column{Objective: 1, Upper: 9, Integer: true},
				milp.Row{Lower: 2.5, Upper: 3.5, Terms: at}), milp.Infeasible, 0,
		},
		{
			"infeasible in whole numbers only", one(milp.Column{Objective: 1, Upper: 9, Integer: true},
				milp.Row{Lower: 3, Upper: 3, Terms: at}), milp.Infeasible, 0,
		},
		{
			"unbounded", one(milp.Column{Objective: 1, Upper: milp.Inf, Integer: true},
				milp.Row{Lower: 3, Upper: milp.Inf, Terms: at}), milp.Unbounded, 0,
		},
		{
			"unbounded linear", one(milp.Column{Objective: 1, Upper: milp.Inf},
				milp.Row{Lower: 3, Upper: milp.Inf, Terms: at}), milp.Unbounded, 0,
		},
		{"no rows", one(milp.Column{Objective: 1, Upper: 9.5, Integer: true}), milp.Optimal, 9},
		{"bounds crossed", one(milp.Column{Objective: 1, Lower: 3, Upper: 2}), milp.Infeasible, 0},
	} {
		got := solve(t, c.p, milp.Limits{})
		if got.Status != c.want || got.Status == milp.Optimal &&
			(math.Abs(got.Values[0]-c.x) > 1e-9 || math.Abs(got.Bound-c.x) > 1e-6 || got.Gap > 1e-6) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if got := solve(t, &milp.Program{}, milp.Limits{}); got.Status != milp.Optimal || len(got.Values) != 0 {
		t.Errorf("the empty program: %+v", got)
	}
	if got := solve(t, &milp.Program{Rows: []milp.Row{{Lower: 1, Upper: 2}}}, milp.Limits{}); got.Status !=
		milp.Infeasible {
		t.Errorf("0 >= 1: %+v", got)
	}
	if _, err := solver(t).Solve(context.Background(), one(milp.Column{Objective: math.NaN()}), milp.Limits{}); err ==
		nil {
		t.Error("an objective that is no number was taken")
	}
	relaxed := solve(t, one(milp.Column{Objective: 1, Upper: 9, Integer: true},
		milp.Row{Lower: -milp.Inf, Upper: 7, Terms: at}), milp.Limits{Relax: true})
	if relaxed.Status != milp.Optimal || relaxed.Objective != 3.5 {
		t.Errorf("relaxed: %+v", relaxed)
	}
}

// A program whose presolved answer breaks a row in HiGHS 1.15: three kinds of workers (3, 1 and 5 of them) for four
// tasks, as a planner asked it.
func TestPresolveIsNotTrusted(t *testing.T) {
	p := &milp.Program{Maximize: true}
	a, b := p.Column(milp.Column{Objective: -0.0007995314093743669, Upper: 1}), p.Column(milp.Column{
		Objective: -0.9992004685906256, Upper: 0.4684579131639004,
	})
	kinds := []float64{3, 1, 5}
	rows := make([][]milp.Term, 3)
	tasks := make([][]milp.Term, 4)
	for task, rate := range [][]float64{
		{1, 1, 1}, {0.08325516139039381, 0.0935149507239819, 0.06275388415749276}, {1, 1, 1}, {1, 1, 1},
	} {
		for k, n := range kinds {
			x := p.Column(milp.Column{Upper: n, Integer: true})
			rows[k] = append(rows[k], milp.Term{Column: x, Coef: 1})
			tasks[task] = append(tasks[task], milp.Term{Column: x, Coef: rate[k]})
		}
	}
	for k, n := range kinds {
		p.Row(-milp.Inf, n, rows[k]...)
	}
	for task := range tasks {
		left := b
		if task == 0 {
			left = a
		}
		p.Row(1, milp.Inf, append(tasks[task], milp.Term{Column: left, Coef: 1})...)
	}
	got := solve(t, p, milp.Limits{AbsoluteGap: 0.0025, Nodes: 200})
	// Two workers for the last two tasks leave seven for the second, and none for the first.
	best := -0.0007995314093743669 - 0.9992004685906256*(1-3*0.08325516139039381-0.0935149507239819-
		3*0.06275388415749276)
	if got.Status != milp.Optimal || math.Abs(got.Objective-best) > 1e-6 {
		t.Errorf("%+v, want %v", got, best)
	}
}

// random makes a small program with integer columns in small boxes and up to one continuous column, some of them
// infeasible.
func random(rng *rand.Rand) *milp.Program {
	p := &milp.Program{Maximize: rng.IntN(2) == 0}
	for range 1 + rng.IntN(4) {
		low := float64(rng.IntN(5) - 2)
		p.Column(milp.Column{
			Objective: float64(rng.IntN(21) - 10), Lower: low, Upper: low + float64(rng.IntN(5)), Integer: true,
		})
	}
	if rng.IntN(2) == 0 {
		p.Column(milp.Column{Objective: float64(rng.IntN(21) - 10), Lower: -3, Upper: 3})
	}
	for range rng.IntN(4) {
		r := milp.Row{Lower: -milp.Inf, Upper: milp.Inf}
		for j := range p.Columns {
			if c := rng.IntN(7) - 3; c != 0 {
				r.Terms = append(r.Terms, milp.Term{Column: j, Coef: float64(c)})
			}
		}
		switch b := float64(rng.IntN(17) - 8); rng.IntN(4) {
		case 0:
			r.Lower, r.Upper = b, b
		case 1:
			r.Lower = b
		case 2:
			r.Upper = b
		default:
			r.Lower, r.Upper = b, b+float64(rng.IntN(4))
		}
		p.Rows = append(p.Rows, r)
	}
	return p
}

// enumerate tries every integer point; what is left for the continuous column is an interval.
func enumerate(p *milp.Program) (best float64, found bool) {
	free := -1
	x := make([]float64, len(p.Columns))
	var try func(j int)
	try = func(j int) {
		if j < len(p.Columns) && p.Columns[j].Integer {
			for v := p.Columns[j].Lower; v <= p.Columns[j].Upper; v++ {
				x[j] = v
				try(j + 1)
			}
			return
		}
		low, high := 0.0, 0.0
		if j < len(p.Columns) {
			free = j
			low, high = p.Columns[j].Lower, p.Columns[j].Upper
		}
		value := 0.0
		for k, c := range p.Columns {
			if k != free {
				value += c.Objective * x[k]
			}
		}
		for _, r := range p.Rows {
			rest, coef := 0.0, 0.0
			for _, t := range r.Terms {
				if t.Column == free {
					coef = t.Coef
				} else {
					rest += t.Coef * x[t.Column]
				}
			}
			a, b := r.Lower-rest, r.Upper-rest
			switch {
			case coef == 0 && (a > 1e-9 || b < -1e-9):
				return
			case coef > 0:
				low, high = max(low, a/coef), min(high, b/coef)
			case coef < 0:
				low, high = max(low, b/coef), min(high, a/coef)
			}
		}
		if low > high+1e-9 {
			return
		}
		if free >= 0 {
			c := p.Columns[free].Objective
			value += max(c*low, c*high) * sign(p.Maximize)
			if !p.Maximize {
				value += min(c*low, c*high) + max(c*low, c*high)
			}
		}
		if !found || p.Maximize && value > best || !p.Maximize && value < best {
			best, found = value, true
		}
	}
	try(0)
	return best, found
}

func sign(positive bool) float64 {
	if positive {
		return 1
	}
	return -1
}

func TestAgainstEnumeration(t *testing.T) {
	infeasible := 0
	for seed := range uint64(600) {
		p := random(rand.New(rand.NewPCG(seed, 1)))
		want, feasible := enumerate(p)
		got := solve(t, p, milp.Limits{})
		if !feasible {
			infeasible++
			if got.Status != milp.Infeasible {
				t.Fatalf("seed %d: %+v, enumeration finds no point: %+v", seed, got, p)
			}
			continue
		}
		if got.Status != milp.Optimal || math.Abs(got.Objective-want) > 1e-5*(1+math.Abs(want)) ||
			math.Abs(got.Bound-want) > 1e-4*(1+math.Abs(want)) {
			t.Fatalf("seed %d: %+v, enumeration finds %v: %+v", seed, got, want, p)
		}
		if v := p.Violation(got.Values); v > 1e-6 {
			t.Fatalf("seed %d: a constraint is broken by %v", seed, v)
		}
	}
	if infeasible < 30 || infeasible > 570 {
		t.Errorf("%d of 600 programs were infeasible: the test tests one side only", infeasible)
	}
}

// knapsack is hard enough to need a search: many similar items, an equality that makes rounding useless.
func knapsack(n int, seed uint64) *milp.Program {
	rng := rand.New(rand.NewPCG(seed, 2))
	p := &milp.Program{Maximize: true}
	rows := make([]milp.Row, 5)
	for i := range rows {
		rows[i].Lower = -milp.Inf
	}
	for j := range n {
		p.Column(milp.Column{Objective: 50 + float64(rng.IntN(50)), Upper: 1, Integer: true})
		for i := range rows {
			c := 20 + float64(rng.IntN(80))
			rows[i].Terms = append(rows[i].Terms, milp.Term{Column: j, Coef: c})
			rows[i].Upper += c / 3
		}
	}
	p.Rows = rows
	return p
}

func TestLimits(t *testing.T) {
	p := knapsack(60, 1)
	exact := solve(t, knapsack(20, 1), milp.Limits{})
	if exact.Status != milp.Optimal || exact.Gap > 1e-6 {
		t.Fatalf("%+v", exact)
	}
	loose := solve(t, p, milp.Limits{Gap: 0.05})
	if loose.Status != milp.Optimal || loose.Gap > 0.05 || loose.Bound < loose.Objective {
		t.Errorf("gap 5%%: %+v", loose)
	}
	cut := solve(t, p, milp.Limits{Nodes: 1})
	if cut.Status != milp.Feasible || cut.Bound < cut.Objective || cut.Gap <= 0 {
		t.Errorf("one node: %v, objective %v, bound %v", cut.Status, cut.Objective, cut.Bound)
	}
	if again := solve(t, p, milp.Limits{Gap: 0.5, Start: loose.Values}); again.Objective < loose.Objective-1e-9 {
		t.Errorf("started at %v, answered %v", loose.Objective, again.Objective)
	}
	if bad := solve(t, p, milp.Limits{Gap: 0.05, Start: make([]float64, 3)}); bad.Status != milp.Optimal {
		t.Errorf("a start of the wrong length: %+v", bad)
	}
	ones := make([]float64, len(p.Columns))
	for i := range ones {
		ones[i] = 1
	}
	if bad := solve(t, p, milp.Limits{Gap: 0.05, Start: ones}); bad.Status != milp.Optimal {
		t.Errorf("an infeasible start: %+v", bad)
	}
}

// A solve that is cancelled ends with the context's error, and the solver stays usable.
func TestCancellation(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := solver(t).Solve(ctx, knapsack(400, 3), milp.Limits{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if _, err := solver(t).Solve(ctx, knapsack(5, 3), milp.Limits{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if got := solve(t, knapsack(15, 3), milp.Limits{}); got.Status != milp.Optimal {
		t.Errorf("afterwards: %+v", got)
	}
}

// A program that needs more memory than it may take is an error of that kind, and the solver stays usable.
func TestMemory(t *testing.T) {
	s, err := New(Options{CacheDir: DefaultCacheDir(), Memory: 24 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Solve(context.Background(), knapsack(60000, 4), milp.Limits{Nodes: 1}); !errors.Is(err,
		milp.ErrMemory) {
		t.Errorf("got %v", err)
	}
	if got, err := s.Solve(context.Background(), knapsack(15, 4), milp.Limits{}); err != nil ||
		got.Status != milp.Optimal {
		t.Errorf("afterwards: %+v, %v", got, err)
	}
}

// The same program has the same answer to the last bit, alone, again on a used instance, and beside others.
func TestDeterminism(t *testing.T) {
	var want []*milp.Solution
	for seed := range uint64(4) {
		want = append(want, solve(t, knapsack(20, seed), milp.Limits{Gap: 0.001}))
	}
	var group sync.WaitGroup
	for range 4 {
		for seed := range uint64(4) {
			group.Add(1)
			go func() {
				defer group.Done()
				got, err := solver(t).Solve(context.Background(), knapsack(20, seed), milp.Limits{Gap: 0.001})
				if err != nil || !reflect.DeepEqual(got, want[seed]) {
					t.Errorf("seed %d: %+v, %v; first it was %+v", seed, got, err, want[seed])
				}
			}()
		}
	}
	group.Wait()
}

func TestClose(t *testing.T) {
	s, err := New(Options{CacheDir: DefaultCacheDir(), Keep: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Solve(context.Background(), knapsack(5, 1), milp.Limits{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Solve(context.Background(), knapsack(5, 1), milp.Limits{}); err == nil {
		t.Error("a closed solver solved")
	}
}

func BenchmarkNew(b *testing.B) {
	for _, c := range []struct{ name, dir string }{{"cold", ""}, {"cached", DefaultCacheDir()}} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				s, err := New(Options{CacheDir: c.dir})
				if err != nil {
					b.Fatal(err)
				}
				_ = s.Close()
			}
		})
	}
}

func BenchmarkSolve(b *testing.B) {
	for _, n := range []int{5, 30, 60} {
		b.Run(fmt.Sprintf("knapsack=%d", n), func(b *testing.B) {
			p := knapsack(n, 1)
			b.ReportAllocs()
			for range b.N {
				b.ReportMetric(solve(b, p, milp.Limits{Gap: 0.005}).Gap, "gap")
			}
		})
	}
}
