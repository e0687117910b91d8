package assign

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/bounded"
)

// bruteForce returns the cheapest assignment, of equals the first, row by row.
func bruteForce(rows, cols int, cost []float64) (float64, []int32) {
	best := math.Inf(1)
	var first []int32
	match := make([]int32, rows)
	taken := make([]bool, cols)
	skips := max(rows-cols, 0)
	var try func(r, skips int, sum float64)
	try = func(r, skips int, sum float64) {
		if r == rows {
			if sum < best {
				best, first = sum, slices.Clone(match)
			}
			return
		}
		for c := range cols {
			if !taken[c] {
				taken[c], match[r] = true, int32(c)
				try(r+1, skips, sum+cost[r*cols+c])
				taken[c] = false
			}
		}
		if skips > 0 {
			match[r] = -1
			try(r+1, skips-1, sum)
		}
	}
	try(0, skips, 0)
	return best, first
}

// drawn fills a matrix in one of the ways that the tests use: whole numbers with many ties or few, some negative, and
// fractions.
func drawn(rng *rand.Rand, kind, rows, cols int) []float64 {
	cost := make([]float64, rows*cols)
	for k := range cost {
		switch kind {
		case 0:
			cost[k] = float64(rng.IntN(3))
		case 1:
			cost[k] = float64(rng.IntN(41) - 20)
		case 2:
			cost[k] = rng.NormFloat64() * 1e6
		case 3:
			cost[k] = float64(1+rng.IntN(4)) * float64(1+(k%cols)%3) // like columns
		}
	}
	return cost
}

// All small shapes, against every assignment: the sum, and the very assignment, since it is the first of equals.
func TestAgainstBruteForce(t *testing.T) {
	var s Solver
	rng := rand.New(rand.NewPCG(1, 1))
	for rows := 1; rows <= 6; rows++ {
		for cols := 1; cols <= 6; cols++ {
			for n := range 120 {
				cost := drawn(rng, n%4, rows, cols)
				match := make([]int32, rows)
				got, err := s.Solve(rows, cols, cost, match)
				want, first := bruteForce(rows, cols, cost)
				if err != nil || math.Abs(got-want) > 1e-6 || !slices.Equal(match, first) {
					t.Fatalf("%d x %d, matrix %d: %v %v (%v), want %v %v\n%v", rows, cols, n, got, match, err, want,
						first, cost)
				}
				u, v := s.Duals()
				if err := certify(rows, cols, cost, match, u, v, 1e-6); err != nil {
					t.Fatalf("%d x %d, matrix %d: %v\n%v", rows, cols, n, err, cost)
				}
			}
		}
	}
}

// Large matrices by duality.
func TestCertificate(t *testing.T) {
	var s Solver
	rng := rand.New(rand.NewPCG(2, 1))
	for _, shape := range [][2]int{
		{300, 300}, {300, 20}, {20, 300}, {299, 300}, {300, 299}, {150, 40}, {1, 300}, {300, 1},
	} {
		for kind := range 5 {
			rows, cols := shape[0], shape[1]
			var cost []float64
			if kind == 4 {
				cost = likeKairos(rng, rows, cols)
			} else {
				cost = drawn(rng, kind, rows, cols)
			}
			match := make([]int32, rows)
			total, err := s.Solve(rows, cols, cost, match)
			if err != nil {
				t.Fatal(err)
			}
			u, v := s.Duals()
			most := 0.0
			for _, x := range cost {
				most = max(most, math.Abs(x))
			}
			if err := certify(rows, cols, cost, match, u, v, most*1e-11); err != nil {
				t.Errorf("%v, kind %d: %v", shape, kind, err)
			}
			dual := 0.0
			for _, p := range u {
				dual += p
			}
			for _, p := range v {
				dual += p
			}
			if math.Abs(total-dual) > most*1e-9 {
				t.Errorf("%v, kind %d: costs %v, the bound is %v", shape, kind, total, dual)
			}
		}
	}
}

// The check refuses wrong certificates: otherwise the test above would prove nothing.
func TestCertifyFindsFaults(t *testing.T) {
	cost := []float64{1, 2, 3, 2, 4, 6}
	for name, spoil := range map[string]func(match []int32, u, v []float64){
		"a worse assignment":      func(match []int32, u, v []float64) { match[0], match[1] = match[1], match[0] },
		"a column twice":          func(match []int32, u, v []float64) { match[0] = match[1] },
		"a column beyond":         func(match []int32, u, v []float64) { match[0] = 3 },
		"a pair too few":          func(match []int32, u, v []float64) { match[0] = -1 },
		"a price too high":        func(match []int32, u, v []float64) { u[0]++ },
		"a free column's price":   func(match []int32, u, v []float64) { v[2] -= 0.5 },
		"a price above zero":      func(match []int32, u, v []float64) { v[0], u[0], u[1] = v[0]+9, u[0]-9, u[1]-9 },
		"what is not a number":    func(match []int32, u, v []float64) { u[1] = math.NaN() },
		"a price that is too low": func(match []int32, u, v []float64) { u[1]-- },
	} {
		var s Solver
		match := make([]int32, 2)
		if _, err := s.Solve(2, 3, cost, match); err != nil {
			t.Fatal(err)
		}
		u, v := s.Duals()
		if err := certify(2, 3, cost, match, u, v, 1e-9); err != nil {
			t.Fatal(err)
		}
		spoil(match, u, v)
		if certify(2, 3, cost, match, u, v, 1e-9) == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// Ties: rows and columns in their order.
func TestFirstOfEquals(t *testing.T) {
	var s Solver
	for _, c := range []struct {
		rows, cols int
		cost       []float64
		want       []int32
	}{
		{3, 3, make([]float64, 9), []int32{0, 1, 2}},
		{2, 4, make([]float64, 8), []int32{0, 1}},
		{4, 2, make([]float64, 8), []int32{0, 1, -1, -1}},
		{3, 1, []float64{5, 4, 4}, []int32{-1, 0, -1}},
		{2, 2, []float64{1, 2, 2, 3}, []int32{0, 1}},
		{0, 3, nil, nil},
		{2, 0, nil, []int32{-1, -1}},
	} {
		match := make([]int32, c.rows)
		if _, err := s.Solve(c.rows, c.cols, c.cost, match); err != nil || !slices.Equal(match, c.want) {
			t.Errorf("%d x %d %v: %v (%v), want %v", c.rows, c.cols, c.cost, match, err, c.want)
		}
	}
}

func TestRefuses(t *testing.T) {
	var s Solver
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		cost := []float64{1, 2, 3, 4, 5, x}
		if _, err := s.Solve(2, 3, cost, make([]int32, 2)); err == nil ||
			!strings.Contains(err.Error(), "row 1 in column 2") {
			t.Errorf("%v: %v", x, err)
		}
	}
	if _, err := s.Solve(2, 3, make([]float64, 5), make([]int32, 2)); err == nil {
		t.Error("five costs passed for 2 x 3")
	}
	if _, err := s.Solve(2, 3, make([]float64, 6), make([]int32, 3)); err == nil {
		t.Error("a match of three rows passed for two")
	}
}

// A workspace that was used before gives what a fresh one gives, and once grown it allocates nothing.
func TestWorkspace(t *testing.T) {
	var used, warm Solver
	warm.Warm = true
	rng := rand.New(rand.NewPCG(3, 1))
	match, want := make([]int32, 40), make([]int32, 40)
	for n := range 300 {
		rows, cols := 1+rng.IntN(40), 1+rng.IntN(40)
		cost := drawn(rng, n%4, rows, cols)
		var fresh Solver
		a, _ := used.Solve(rows, cols, cost, match[:rows])
		b, _ := fresh.Solve(rows, cols, cost, want[:rows])
		if a != b || !slices.Equal(match[:rows], want[:rows]) {
			t.Fatalf("matrix %d: %v, fresh %v", n, match[:rows], want[:rows])
		}
		for range 2 {
			if rows >= cols { // a problem much like it, and the problem
				like := slices.Clone(cost)
				like[rng.IntN(len(like))]++
				warm.Solve(rows, cols, like, match[:rows])
			}
			if c, _ := warm.Solve(rows, cols, cost, match[:rows]); c != b || !slices.Equal(match[:rows], want[:rows]) {
				t.Fatalf("matrix %d: warm %v, fresh %v", n, match[:rows], want[:rows])
			}
			u, v := warm.Duals()
			if err := certify(rows, cols, cost, match[:rows], u, v, 1e-3); err != nil {
				t.Fatalf("matrix %d: %v", n, err)
			}
		}
	}
	cost := drawn(rng, 2, 40, 30)
	if n := testing.AllocsPerRun(20, func() {
		used.Solve(40, 30, cost, match[:40])
		used.Solve(30, 40, cost, match[:30])
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzSolve(f *testing.F) {
	f.Add(uint8(2), []byte{1, 2, 3, 4, 5, 6})
	f.Add(uint8(1), []byte{0, 0, 0})
	f.Fuzz(func(t *testing.T, rows uint8, data []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(data)))()
		if rows == 0 || rows > 6 || len(data) < int(rows) {
			return
		}
		cols := min(len(data)/int(rows), 6)
		cost := make([]float64, int(rows)*cols)
		for k := range cost {
			cost[k] = float64(int8(data[k]))
		}
		var s Solver
		match := make([]int32, rows)
		got, err := s.Solve(int(rows), cols, cost, match)
		if want, first := bruteForce(int(rows), cols, cost); err != nil || got != want || !slices.Equal(match, first) {
			t.Fatalf("%d x %d %v: %v %v (%v), want %v %v", rows, cols, cost, got, match, err, want, first)
		}
	})
}

// likeKairos makes costs as a matching of queries to instances has them: a size by row, a speed by kind of column, what
// is left of a column's work, and a penalty where that would be too late.
func likeKairos(rng *rand.Rand, rows, cols int) []float64 {
	cost := make([]float64, rows*cols)
	base, slope := []float64{20, 60, 30}, []float64{0.2, 0.6, 1.1}
	weight := []float64{1, 0.33, 0.19}
	left := make([]float64, cols)
	for c := range left {
		if rng.IntN(2) == 0 {
			left[c] = rng.Float64() * 150
		}
	}
	for r := range rows {
		size, slack := float64(10*(1+rng.IntN(100))), 250+100*rng.Float64()
		for c := range cols {
			k := c * 3 / cols
			l := left[c] + base[k] + slope[k]*size
			if l > slack {
				cost[r*cols+c] = 3500
			} else {
				cost[r*cols+c] = weight[k] * l
			}
		}
	}
	return cost
}

func BenchmarkSolve(b *testing.B) {
	uniform := func(rng *rand.Rand, rows, cols int) []float64 {
		cost := make([]float64, rows*cols)
		for k := range cost {
			cost[k] = rng.Float64()
		}
		return cost
	}
	for _, kind := range []struct {
		name string
		make func(rng *rand.Rand, rows, cols int) []float64
	}{{"uniform", uniform}, {"kairos", likeKairos}} {
		for _, shape := range []struct {
			name       string
			rows, cols int
		}{{"20x20", 20, 20}, {"40x20", 40, 20}, {"200x20", 200, 20}, {"20x200", 20, 200}, {"200x200", 200, 200}} {
			b.Run(kind.name+"/"+shape.name, func(b *testing.B) {
				rng := rand.New(rand.NewPCG(5, 1))
				var costs [16][]float64
				for k := range costs {
					costs[k] = kind.make(rng, shape.rows, shape.cols)
				}
				match := make([]int32, shape.rows)
				var s Solver
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					if _, err := s.Solve(shape.rows, shape.cols, costs[n%16], match); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// certify reports why match is not proven to be a cheapest assignment by the dual prices u of rows and v of columns;
// nil means that it is. It checks complementary slackness up to tolerance: no reduced cost (cost less both prices) is
// negative, those of matched pairs are zero, and on the longer side no price is above zero and free rows or columns
// have price zero. It knows nothing of how the prices were found.
func certify(rows, cols int, cost []float64, match []int32, u, v []float64, tolerance float64) error {
	taken := make([]bool, cols)
	pairs := 0
	for r, c := range match {
		if c < 0 {
			continue
		}
		if int(c) >= cols || taken[c] {
			return fmt.Errorf("assign: row %d has column %d, which does not exist or is taken", r, c)
		}
		taken[c] = true
		pairs++
		if d := cost[r*cols+int(c)] - u[r] - v[c]; !(math.Abs(d) <= tolerance) {
			return fmt.Errorf("assign: row %d and column %d are matched and their reduced cost is %v", r, c, d)
		}
	}
	if pairs != min(rows, cols) {
		return fmt.Errorf("assign: %d pairs, %d rows and %d columns give %d", pairs, rows, cols, min(rows, cols))
	}
	for at, x := range cost {
		if d := x - u[at/cols] - v[at%cols]; !(d >= -tolerance) {
			return fmt.Errorf("assign: row %d and column %d have reduced cost %v", at/cols, at%cols, d)
		}
	}
	if err := checkFree("row", rows > cols, u, tolerance, func(at int) bool { return match[at] < 0 }); err != nil {
		return err
	}
	return checkFree("column", cols > rows, v, tolerance, func(at int) bool { return !taken[at] })
}

// checkFree checks the prices of one side. longer says that the side has free members; left reports whether one is
// free.
func checkFree(what string, longer bool, price []float64, tolerance float64, left func(int) bool) error {
	for at, p := range price {
		if longer && (p > tolerance || left(at) && p < -tolerance) {
			return fmt.Errorf("assign: %s %d has price %v: want none above zero, and zero where it is free", what, at,
				p)
		}
	}
	return nil
}
