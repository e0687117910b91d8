package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// withoutPlanned returns floors with all rows marked as planned, so that a fake tree need not have every package.
func withoutPlanned(pkgs []Package) []row {
	table := slices.Clone(floors)
	for i := range table {
		table[i].planned = true
	}
	for _, p := range pkgs {
		if i := placeOf(floors, p.Path); i >= 0 {
			table[i].planned = false
		}
	}
	return table
}

// problems checks a fake tree: file name -> body after the package clause. Files named doc.go get a package comment.
func problems(t *testing.T, files map[string]string) []Violation {
	t.Helper()
	pkgs := load(t, files)
	return check(withoutPlanned(pkgs), pkgs)
}

func load(t *testing.T, files map[string]string) []Package {
	t.Helper()
	tree := fstest.MapFS{}
	for name, body := range files {
		dir := path.Dir(name)
		pkg := path.Base(dir)
		tree[name] = &fstest.MapFile{Data: []byte("package " + pkg + "\n" + body)}
		tree[path.Join(dir, "doc.go")] = &fstest.MapFile{
			Data: []byte(fmt.Sprintf("// Package %s is fake.\npackage %[1]s\n", pkg)),
		}
	}
	pkgs, err := Load(tree)
	if err != nil {
		t.Fatal(err)
	}
	return pkgs
}

func imports(paths ...string) string {
	var b strings.Builder
	for _, p := range paths {
		if p[0] == '/' {
			p = Module + p
		}
		fmt.Fprintf(&b, "import _ %q\n", p)
	}
	return b.String()
}

func TestRules(t *testing.T) {
	const none = ""
	tests := []struct {
		name string
		file string
		body string
		want string // part of the one violation, or none
	}{
		{"down is fine", "engine/a.go", imports("/serving", "/policy/route", "/serving/fleet"), none},
		{"up is not", "engine/a.go", imports("/sim"), "engine (floor 3) imports sim (floor 5)"},
		{"up from policy", "policy/route/a.go", imports("/engine"), "policy/route (floor 2) imports engine (floor 3)"},
		{
			"algo does not know serving", "internal/algo/assign/a.go", imports("/serving"),
			"algorithm is tested against textbooks",
		},
		{"algo knows algo", "internal/algo/milp/a.go", imports("/internal/algo/dag"), none},
		{"state does not know who decides", "serving/fleet/a.go", imports("/policy/plan"), "state does not know"},
		{"planners are blind", "papers/kairos/a.go", imports("/papers/ramsis"), "no silos"},
		{"planners build on what is shared", "papers/infless/a.go", imports("/internal/planner/packing"), none},
		{"planners do not reach for rules", "papers/kairos/a.go", imports("/policy/batch"), "no silos"},
		{
			"planners read the plan", "papers/kairos/a.go",
			imports("/policy/plan", "/internal/algo/assign", "/serving/profile"), none,
		},
		{"the plan knows no rule", "policy/plan/a.go", imports("/policy/route"), "plain data"},
		{"routers do not know batchers", "policy/route/a.go", imports("/policy/batch"), "any router"},
		{"routers do not know planners", "policy/route/a.go", imports("/papers/kairos"), "any router"},
		{"scalers read the plan", "policy/scale/a.go", imports("/policy/plan"), none},
		{"engine does not know planners", "engine/a.go", imports("/papers/kairos"), "ports only"},
		{"engine does not know systems", "engine/a.go", imports("/internal/systems"), "ports only"},
		{"engine uses a port", "engine/a.go", "import \"" + Module + "/policy/route\"\nvar r route.Router", none},
		{
			"engine does not name a rule", "engine/a.go",
			"import \"" + Module + "/policy/route\"\nvar r = route.NewWeighted()", "constructs a rule",
		},
		{"a paper's systems know the paper", "internal/systems/kairos.go", imports("/papers/kairos"), none},
		{"the default system knows no paper", "internal/systems/fluid.go", imports("/papers/infless"), "no paper"},
		{"systems do not know drivers", "internal/systems/a.go", imports("/dataplane"), "must mean the same"},
		{"truth is not belief", "sim/truth/a.go", imports("/serving/profile"), "confirms itself"},
		{"truth reads measurements", "sim/truth/a.go", imports("/serving"), none},
		{"sim uses its truth", "sim/a.go", imports("/sim/truth", "/engine"), none},
		{"sim does not know the data plane", "sim/a.go", imports("/dataplane"), "blind to each other"},
		{"data plane does not know sim", "dataplane/a.go", imports("/sim"), "small interfaces"},
		{"data plane does not know backends", "dataplane/a.go", imports("/internal/runtime/onnx"), "small interfaces"},
		{"data plane does not know config", "dataplane/a.go", imports("/internal/config"), "both stand on floor 5"},
		{"adapters do not decide", "internal/runtime/fake/a.go", imports("/engine"), "adapters do not decide"},
		{"adapters meet the interface", "internal/runtime/fake/a.go", imports("/dataplane", "/tensor"), none},
		{"codec knows no scheduling", "internal/api/oip/a.go", imports("/engine"), "codec"},
		{"generated messages are part of the codec", "internal/api/oip/pb/a.go", imports("/engine"), "codec"},
		{"kubernetes is heavy", "internal/api/server/a.go", imports("k8s.io/api/core/v1"), "heavy dependency"},
		{"native code has its place", "internal/runtime/onnx/a.go", imports("github.com/yalue/onnxruntime_go"), none},
		{
			"native code has one place", "internal/api/server/a.go", imports("github.com/yalue/onnxruntime_go"),
			"process-wide",
		},
		{
			"neighbours are blind", "internal/api/server/a.go", imports("/internal/measure/loadgen"),
			"both stand on floor 6",
		},
		{"a widening with a reason", "internal/models/repository/a.go", imports("/internal/models/onnxmodel"), none},
		{"helpers do not ship", "internal/api/server/a.go", imports("/internal/simtest"), "outside a test"},
		{"helpers may look anywhere", "internal/simtest/a.go", imports("/sim", "/dataplane", "os"), none},
		{"native is no helper", "internal/runtime/onnx/a.go", imports("/internal/runtime/native"), none},
		{
			"native is not for the core", "internal/systems/a.go", imports("/internal/runtime/native"),
			"imports point down",
		},
		{"tests are exempt", "engine/a_test.go", imports("/sim", "os", "sync"), none},
		{"unknown package", "utils/a.go", "", "add a row to floors"},

		{"no os", "serving/a.go", imports("os"), "may not import os"},
		{"no os/exec", "serving/a.go", imports("os/exec"), "may not import os/exec"},
		{"no net/http", "serving/report/a.go", imports("net/http"), "may not import net/http"},
		{"no slog", "engine/a.go", imports("log/slog"), "may not import log/slog"},
		{"no locks", "engine/a.go", imports("sync/atomic"), "may not import sync/atomic"},
		{"no files", "internal/engine/journal/a.go", imports("io/fs"), "may not import io/fs"},
		{"streams are fine", "internal/engine/journal/a.go", imports("io", "bufio", "encoding/binary"), none},
		{
			"effects are fine above", "dataplane/a.go",
			"import \"time\"\nfunc f(c chan int) { go f(c); _ = time.Now(); <-c }", none,
		},
		{"no goroutine", "engine/a.go", "func f() { go f() }", "a go statement"},
		{"no channel", "engine/a.go", "type c chan int", "a chan type"},
		{"no select", "engine/a.go", "func f() { select {} }", "a select statement"},
		{"no receive", "engine/a.go", "func f() { <-g() }", "a channel receive"},
		{"no clock", "engine/a.go", "import \"time\"\nfunc f() { time.Sleep(1) }", "uses Sleep"},
		{"no clock under another name", "engine/a.go", "import c \"time\"\nvar now = c.Now", "uses Now"},
		{"no clock through a dot", "engine/a.go", "import . \"time\"\nvar now = Now", "dot import"},
		{"durations are fine", "engine/a.go", "import \"time\"\nconst d = 3 * time.Second\nvar e time.Duration", none},
		{
			"a variable may be called time", "engine/a.go",
			"import \"time\"\nvar _ time.Duration\nfunc f(time struct{ Now int }) int { return time.Now }", none,
		},
		{
			"no hidden chance", "serving/workload/a.go", "import \"math/rand/v2\"\nvar x = rand.Float64()",
			"hidden global source",
		},
		{
			"passed chance is fine", "serving/workload/a.go",
			"import \"math/rand/v2\"\nfunc f(r *rand.Rand) float64 { return r.Float64() }", none,
		},
		{"what does not compile still counts", "engine/a.go", imports("os") + "func f( {", "may not import os"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := problems(t, map[string]string{tt.file: tt.body})
			switch {
			case tt.want == none && len(got) > 0:
				t.Errorf("unexpected: %v", got)
			case tt.want != none && len(got) != 1:
				t.Errorf("got %d violations %v, want one with %q", len(got), got, tt.want)
			case tt.want != none && !strings.Contains(got[0].String(), tt.want):
				t.Errorf("got %v, want %q", got[0], tt.want)
			}
		})
	}
}

func TestPlacesAreFilledOrPlanned(t *testing.T) {
	pkgs := load(t, map[string]string{"serving/a.go": ""})
	table := []row{{0, "serving", true}, {0, "algo/*", false}, {3, "engine", true}}
	got := check(table, pkgs)
	if len(got) != 2 {
		t.Fatalf("got %v, want two violations", got)
	}
	if got[0].At != "serving" || !strings.Contains(got[0].What, "drop its planned mark") {
		t.Errorf("a package in a planned place: %v", got[0])
	}
	if got[1].At != "algo/*" || !strings.Contains(got[1].What, "mark the row planned") {
		t.Errorf("an empty place: %v", got[1])
	}
}

func TestPackageComments(t *testing.T) {
	tests := []struct {
		name  string
		files fstest.MapFS
		want  string
	}{
		{
			"none", fstest.MapFS{
				"serving/a.go": {Data: []byte("//go:build linux\n\npackage serving\n")},
			}, "0 package comments",
		},
		{
			"directive only", fstest.MapFS{
				"serving/a.go": {Data: []byte("//go:generate true\npackage serving\n")},
			}, "0 package comments",
		},
		{"two", fstest.MapFS{
			"serving/a.go": {Data: []byte("// Package serving a.\npackage serving\n")},
			"serving/b.go": {Data: []byte("// Package serving b.\npackage serving\n")},
		}, "2 package comments"},
		{"one and a test's", fstest.MapFS{
			"serving/a.go":      {Data: []byte("// Package serving a.\npackage serving\n")},
			"serving/a_test.go": {Data: []byte("// Package serving b.\npackage serving\n")},
		}, ""},
		{
			"only tests", fstest.MapFS{
				"serving/a_test.go": {Data: []byte("// Package serving b.\npackage serving\n")},
			}, "",
		},
		{"never built", fstest.MapFS{
			"serving/a.go":   {Data: []byte("// Package serving a.\npackage serving\n")},
			"serving/gen.go": {Data: []byte("//go:build ignore\n\n// Command gen.\npackage main\nimport \"os\"\n")},
		}, ""},
		{"not ours to read", fstest.MapFS{
			"serving/a.go":                 {Data: []byte("// Package serving a.\npackage serving\n")},
			"serving/testdata/x/a.go":      {Data: []byte("package x\n")},
			"node_modules/flatted/go/a.go": {Data: []byte("package x\n")},
			"nested/go.mod":                {Data: []byte("module nested\n")},
			"nested/a.go":                  {Data: []byte("package nested\n")},
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pkgs, err := Load(tt.files)
			if err != nil {
				t.Fatal(err)
			}
			got := check([]row{{0, "serving", false}}, pkgs)
			if tt.want == "" && len(got) > 0 {
				t.Errorf("unexpected: %v", got)
			}
			if tt.want != "" && (len(got) != 1 || !strings.Contains(got[0].What, tt.want)) {
				t.Errorf("got %v, want %q", got, tt.want)
			}
		})
	}
}

// An exception is refused once no import needs it, wherever it is listed.
func TestUnusedExceptions(t *testing.T) {
	pkgs := load(t, map[string]string{
		"engine/a.go":                  imports("/papers/kairos"),
		"internal/systems/kairos.go":   imports("/papers/kairos"),
		"internal/systems/fluid.go":    imports("/serving"),
		"papers/kairos/a.go":           imports("/policy/plan"),
		"internal/planner/fluid/a.go":  imports("/policy/plan", "/internal/planner/static"),
		"internal/planner/static/a.go": imports(),
	})
	used := []edge{{"engine", "papers/kairos", "why"}}
	crosses := []edge{{"papers/*", "policy/plan", "why"}}
	if got := unused(pkgs, used, crosses, []string{"kairos.go"}); len(got) > 0 {
		t.Errorf("these are needed: %v", got)
	}
	unneeded := []edge{{"engine", "papers/ramsis", "why"}}
	within := []edge{{"internal/planner/*", "internal/planner/*", "why"}} // one folder: no exception is needed
	got := unused(pkgs, unneeded, within, []string{"fluid.go"})
	var at []string
	for _, v := range got {
		at = append(at, v.At)
	}
	want := []string{
		"engine -> papers/ramsis", "internal/planner/* -> internal/planner/*", "internal/systems/fluid.go",
	}
	if !slices.Equal(at, want) {
		t.Errorf("reported are %q, want %q", at, want)
	}
}
