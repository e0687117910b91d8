package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

// counting has a class that counts the rows of a query, and classes that stand before it: one gives three rows for each
// that it gets, the other one.
const counting = `
import numpy as np
class Count:
    inputs = {"y": "FP32[-1,2]"}
    outputs = {"n": "INT64[-1]"}
    each_query = True
    def infer(self, i): return {"n": np.array([len(i["y"])])}
class Split:
    inputs = {"x": "FP32[-1,2]"}
    outputs = {"y": "FP32[-1,2]"}
    each_query = True
    def infer(self, i): return {"y": np.repeat(i["x"], 3, axis=0)}
class Rows:
    inputs = {"x": "FP32[-1,2]"}
    outputs = {"y": "FP32[-1,2]"}
    def infer(self, i): return {"y": i["x"] + 1}
class Rest:
    inputs, outputs = Count.inputs, Count.outputs
    def infer(self, i): return {"n": np.ones(len(i["y"]), np.int64)}
class Twice:
    inputs = {"n": "INT64[-1]"}
    outputs = {"m": "INT64[-1]"}
    def infer(self, i): return {"m": 2 * i["n"]}
`

// A class that is called for each query gets all rows of a query at once, also behind a stage that fans out: rows,
// items, and both. A stage behind it works on what it gives.
func TestEachQueryBehindFanOut(t *testing.T) {
	t.Parallel()
	needsPython(t, "numpy")
	dir := t.TempDir()
	write(t, dir, "app.py", "%s", counting)
	stages := func(name, first, next, more string) string {
		return fmt.Sprintf(`
  - name: %s
    slo: {latency: 5s}
    late: serve-late
    stages:
      - {name: first, variants: [{python: "app.py:%s", max_batch: 4}], next: [{to: count%s}]}
      - {name: count, variants: [{python: "app.py:Count", max_batch: 4}]%s}
`, name, first, next, more)
	}
	file := write(t, dir, "sluice.yaml", `
version: 1
device_types: [{name: any, cores: 1}]
workers: [{name: w, backend: {kind: python}}]
profiles: [profile.json]
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "off"}
apps:
%s%s%s%s`, stages("fan", "Split", ", rows: y, fan_out: 3", ""), stages("nofan", "Split", "", ""),
		stages("lines", "Rows", "", ""), stages("after", "Split", ", rows: y, fan_out: 3", `, next: [{to: twice}]}
      - {name: twice, variants: [{python: "app.py:Twice", max_batch: 4}]`))
	profile := filepath.Join(dir, "profile.json")
	if status, out, errs := run(t.Context(), "profile", "-f", file, "-o", profile, "--max-time", "5ms", "--precision",
		"50"); status != 0 {
		t.Fatalf("%d %s%s", status, out, errs)
	}
	address := serve(t, "-f", file).http
	call := func(app string, rows int) (int, string) {
		data, _ := json.Marshal(make([]float32, 2*rows))
		return postTo(t, fmt.Sprintf("http://%s/v2/models/%s/infer", address, app), fmt.Sprintf(
			`{"inputs":[{"name":"x","datatype":"FP32","shape":[%d,2],"data":%s}]}`, rows, data))
	}
	for app, times := range map[string]int{"fan": 3, "nofan": 3, "lines": 1, "after": 6} {
		until(t, func() bool { status, _ := call(app, 1); return status == http.StatusOK })
		for rows := 1; rows <= 4; rows++ {
			want := fmt.Sprintf(`"shape":[1],"data":[%d]`, times*rows)
			if status, body := call(app, rows); status != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s, %d rows: %d %s, want %s", app, rows, status, body, want)
			}
		}
	}

	// A profile that does not say so, such as one of before, would have queries counted wrongly.
	f, err := profiler.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	mixed := write(t, dir, "mixed.yaml", "%s", strings.Replace(string(text), `{python: "app.py:Count", max_batch: 4}`,
		`{python: "app.py:Count", accuracy: 0.9}, {python: "app.py:Rest", accuracy: 0.8}`, 1))
	status, _, errs := run(t.Context(), "serve", "-f", mixed, "--profile", profile, "--http", "127.0.0.1:0")
	if status == 0 || !strings.Contains(errs, `"Count" has each_query, variant "Rest" has not`) {
		t.Errorf("%d %s", status, errs)
	}
	f.EachQuery = nil
	if err := f.WriteFile(profile); err != nil {
		t.Fatal(err)
	}
	status, _, errs = run(t.Context(), "serve", "-f", file, "--http", "127.0.0.1:0")
	if status == 0 || !strings.Contains(errs, `"fan": the class of variant "Count" has each_query`) {
		t.Errorf("%d %s", status, errs)
	}
}
