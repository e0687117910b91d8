package maporder

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"
)

// No package of this module has a loop whose result depends on the order of a map.
func TestNoLoopDependsOnTheOrderOfAMap(t *testing.T) {
	packages, err := Load(t.Context(), "../..", "./...")
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 50 {
		t.Fatalf("only %d packages were loaded", len(packages))
	}
	for _, p := range packages {
		for _, found := range p.Check() {
			t.Errorf("%s\n\tgo through slices.Sorted(maps.Keys(m)), sort the result, or say why any order will do: "+
				"// %s REASON", found, marker)
		}
	}
}

// The rule reports the loops that depend on an order, and no others.
func TestLoopsThatAreReported(t *testing.T) {
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "source", nil)
	const head = `package p
import ("maps"; "slices"; "sort")
type s struct{ total float64; list []int }
var _ = maps.Keys[map[int]int]
var _ = slices.Sort[[]int]
var _ = sort.Ints
`
	for _, c := range []struct{ name, body, want string }{
		{"float sum", `func f(m map[int]float64) (x float64) { for _, v := range m { x += v }; return x }`,
			"x is accum"},
		{"difference", `func f(m map[int]float64) (x float64) { for _, v := range m { x -= v }; return x }`,
			"x is accum"},
		{"product", `func f(m map[int]float32) (x float32) { for _, v := range m { x *= v }; return x }`, "x is accum"},
		{"written out", `func f(m map[int]float64) (x float64) { for _, v := range m { x = 2 + (v + x) }; return x }`,
			"x is accum"},
		{"two at once", `func f(m map[int]float64) (x, y float64) { for _, v := range m { x, y = x+v, v }; return }`,
			"x is accum"},
		{"field", `func f(m map[int]float64, x *s) { for _, v := range m { x.total += v } }`, "x.total is accum"},
		{"by value", `func f(m map[int]int, x []float64) { for _, v := range m { x[v] += 1 } }`, "x[v] is accum"},
		{"through an iterator",
			`func f(m map[int]float64) (x float64) { for v := range maps.Values(m) { x += v }; return }`,
			"x is accum"},
		{"inner loop",
			`func f(m map[int][]int8, x *s) { for _, l := range m { for range l { x.total += 1 } } }`,
			"x.total is accum"},
		{"in a function value",
			`var f = func(m map[int]float64) (x float64) { for _, v := range m { x += v }; return }`,
			"x is accum"},
		{"string", `func f(m map[string]int) (x string) { for k := range m { x += k }; return }`, "x is accum"},
		{"slice", `func f(m map[int]int) (x []int) { for k := range m { x = append(x, k) }; return }`, "x is appended"},
		{"slice sorted before", `func f(m map[int]int) (x []int) {
			sort.Ints(x); for k := range m { x = append(x, k) }; return }`, "x is appended"},
		{"another slice sorted", `func f(m map[int]int, y []int) (x []int) {
			for k := range m { x = append(x, k) }; sort.Ints(y); return }`, "x is appended"},

		{"integer", `func f(m map[int]int) (x int) { for _, v := range m { x += v }; return }`, ""},
		{"largest", `func f(m map[int]float64) (x float64) { for _, v := range m { x = max(x, v) }; return }`, ""},
		{"by key", `func f(m map[int]float64) { for k := range m { m[k] /= 2 } }`, ""},
		{"own variable",
			`func f(m map[int][]float64) { for _, l := range m { x := 0.0; for _, v := range l { x += v } } }`, ""},
		{"over a slice", `func f(m []float64) (x float64) { for _, v := range m { x += v }; return }`, ""},
		{"sorted keys", `func f(m map[int]float64) (x float64) {
			for _, k := range slices.Sorted(maps.Keys(m)) { x += m[k] }; return }`, ""},
		{"sorted slice", `func f(m map[int]int) (x []int) {
			for k := range m { x = append(x, k) }; slices.Sort(x); return }`, ""},
		{"sorted field", `func f(m map[int]int, x *s) {
			for k := range m { x.list = append(x.list, k) }; sort.Ints(x.list) }`, ""},
		{"with a reason", `func f(m map[int]int) (x []int) {
			for k := range m { // any order: it is a set
				x = append(x, k) }; return }`, ""},
		{"with a reason before", `func f(m map[int]int) (x []int) {
			// any order: it is a set
			for k := range m { x = append(x, k) }
			return }`, ""},
		{"without a reason", `func f(m map[int]int) (x []int) {
			// any order:
			for k := range m { x = append(x, k) }
			return }`, "x is appended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := check(t, fset, imports, head+c.body)
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("unexpected: %v", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}

func check(t *testing.T, fset *token.FileSet, imports types.Importer, text string) []string {
	t.Helper()
	p := &Package{Fset: fset, Info: &types.Info{
		Types: make(map[ast.Expr]types.TypeAndValue), Defs: make(map[*ast.Ident]types.Object),
		Uses: make(map[*ast.Ident]types.Object),
	}}
	f, err := parser.ParseFile(p.Fset, "p.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	p.Files = []*ast.File{f}
	config := types.Config{Importer: imports}
	if _, err := config.Check("p", p.Fset, p.Files, p.Info); err != nil {
		t.Fatal(err)
	}
	return p.Check()
}
