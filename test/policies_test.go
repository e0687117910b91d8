package test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/tensor"
)

// width of the rows that the models of this test take.
const width = 256

// products writes a model that multiplies its input with one matrix so many times: what it costs is what counts.
func products(t *testing.T, path string, times int) {
	t.Helper()
	matrix := make([]float32, width*width)
	for i := range matrix {
		matrix[i] = float32((i*7)%13-6) / 100
	}
	g := onnxmodel.NewGraph("products").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, width).Output("y",
		onnxmodel.Float32, onnxmodel.Symbolic, width).
		Initializer("w", matrix, width, width)
	from := "x"
	for k := range times {
		to := fmt.Sprintf("h%d", k)
		if k == times-1 {
			to = "y"
		}
		g.Node("MatMul", []string{from, "w"}, []string{to})
		from = to
	}
	if err := g.Write(path); err != nil {
		t.Fatal(err)
	}
}

// poisson sends Poisson arrivals to app and returns what came of them.
func poisson(t *testing.T, client loadgen.Target, columns int64, rate float64, span time.Duration) *report.Report {
	t.Helper()
	samples, err := loadgen.Synthetic([]tensor.Spec{{Name: "x", DType: tensor.FP32, Shape: []int64{-1, columns}}}, 8, 1)
	if err != nil {
		t.Fatal(err)
	}
	spec := workload.Spec{
		Seed: 1, DurationS: span.Seconds(), Apps: []workload.AppSpec{{App: "app", Rate: rate, Samples: 8}},
	}
	src, err := spec.Source(func(string) (serving.AppID, error) { return 0, nil })
	if err != nil {
		t.Fatal(err)
	}
	r, err := loadgen.Run(t.Context(), client, []loadgen.App{
		{Name: "app", SLO: serving.SLO{Latency: 200 * time.Millisecond, Percentile: 99}, Samples: samples},
	}, src,
		loadgen.Options{Duration: span, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s := &r.Report.Overall
	if s.Offered == 0 || s.Served+s.Dropped != s.Offered || s.Latency.Max > 15_000 {
		t.Errorf("at %.0f/s: %d offered, %d served, %d dropped, %d refused, %d failed, the slowest took %.0f ms: "+
			"want every query answered or given up for its deadline",
			rate, s.Offered, s.Served, s.Dropped, s.Refused, s.Failed, s.Latency.Max)
	}
	return r.Report
}

// share is the part of the answers that a variant gave.
func share(r *report.Report, variant string) float64 {
	for _, v := range r.Variants {
		if v.Name == variant {
			return v.Share
		}
	}
	return 0
}

// metric reads one series of a server.
func metric(t *testing.T, admin string, series string) float64 {
	t.Helper()
	resp, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), series+" "); ok {
			x, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
	}
	t.Fatalf("there is no series %s", series)
	return 0
}

// A server of system ramsis over real models: it measures them at its first start, makes policies for what it measured
// and keeps them, answers everything, and answers with the better model for as long as the load lets it.
func TestPoliciesLive(t *testing.T) {
	needsONNX(t)
	dir := t.TempDir()
	products(t, filepath.Join(dir, "models", "big", "1", "model.onnx"), 1000)
	products(t, filepath.Join(dir, "models", "small", "1", "model.onnx"), 10)
	file := write(t, dir, "sluice.yaml", `
version: 1
device_types: [{name: core, cores: 1}]
workers: [{name: w}]
models: {repository: models}
system: {name: ramsis, slack: 20ms, options: {levels: 50, step: 0.05}}
apps:
  - name: app
    slo: {latency: 200ms}
    variants: [{name: big, accuracy: 0.9, max_batch: 4}, {name: small, accuracy: 0.6, max_batch: 4}]
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "127.0.0.1:0", admin: "127.0.0.1:0"}
`)
	server := serve(t, "-f", file, "--profile-first")
	until(t, func() bool { return get(server.url()+"/v2/health/ready") == 200 })
	client, err := loadgen.DialGRPC(server.grpc, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	measured := filepath.Join(dir, "sluice.profile.json")
	big := carries(t, measured, "big")
	// Policies hold from when every variant is loaded.
	until(t, func() bool {
		poisson(t, client, width, 10, time.Second)
		return metric(t, server.admin, `sluice_policy_rate{app="app"}`) > 0
	})
	calm := poisson(t, client, width, min(0.05*big, 20), 3*time.Second)
	low := metric(t, server.admin, `sluice_policy_rate{app="app"}`)
	busy := poisson(t, client, width, min(2*big, 1500), 3*time.Second)
	high := metric(t, server.admin, `sluice_policy_rate{app="app"}`)
	t.Logf("big carries %.0f/s and gives %.3f and %.3f of the answers; policies for %v and %v/s", big,
		share(calm, "big"), share(busy, "big"), low, high)
	if c, b := share(calm, "big"), share(busy, "big"); !(c > b) {
		t.Errorf("the big model, which carries %.0f/s, gives %.1f %% of the answers when there is little to do and "+
			"%.1f %% when there is too much for it", big, 100*c, 100*b)
	}
	if !(high > low) {
		t.Errorf("the policy in force is for %v/s after little load and for %v/s after much", low, high)
	}
	n, a := metric(t, server.admin, `sluice_promised_queries_total{app="app"}`),
		metric(t, server.admin, `sluice_promised_accuracy_sum{app="app"}`)
	if n < float64(calm.Overall.Served) || !(a > 0) {
		t.Errorf("%v queries were promised an accuracy, %v in sum", n, a)
	}
	resp, err := http.Get("http://" + server.admin + "/debug/decisions?limit=4000")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	tabled := 0
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), "as the policy says") {
			tabled++
		}
	}
	if tabled == 0 {
		t.Error("no batch was started because a policy says so")
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	// What the server made is there for every other command.
	status, text, errs := run(t.Context(), "policy", "generate", "-f", file, "--profile", measured, "--json")
	var found []struct {
		TookMS *float64 `json:"took_ms"`
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil || status != 0 || len(found) < 2 {
		t.Fatalf("%d policies: %d %v %s", len(found), status, err, errs)
	}
	for _, p := range found {
		if p.TookMS != nil {
			t.Errorf("a policy was made again that the server had made: %s", text)
			break
		}
	}
}

// carries is what a variant carries by a profile in batches of four, in queries/s.
func carries(t *testing.T, path, variant string) float64 {
	t.Helper()
	var f struct {
		Points []struct {
			Variant string
			Batch   int
			P95     float64 `json:"p95_us"`
		}
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Points {
		if p.Variant == variant && p.Batch == 4 {
			return 4e6 / p.P95
		}
	}
	t.Fatalf("%s does not measure %s in batches of 4", path, variant)
	return 0
}

// A load beyond all rates that there are policies for: the last one serves on while a policy for more is made in the
// background, which then comes into force and is kept.
func TestUncoveredLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, dir, "sluice.yaml", `
version: 1
device_types: [{name: d}]
workers: [{name: w, count: 2, backend: {kind: fake, latency: 4ms, latency_per_item: 1ms}}]
system: {name: ramsis, options: {levels: 50, rates: "20"}}
apps:
  - name: app
    slo: {latency: 200ms}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: big, accuracy: 0.9, max_batch: 8}]
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "127.0.0.1:0", admin: "127.0.0.1:0"}
`)
	server := serve(t, "-f", file)
	until(t, func() bool { return get(server.url()+"/v2/health/ready") == 200 })
	client, err := loadgen.DialGRPC(server.grpc, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	kept := func() int {
		files, err := filepath.Glob(filepath.Join(dir, "sluice.policies", "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	if n := kept(); n != 1 {
		t.Fatalf("%d policies before any load, want the one asked for", n)
	}
	rate := func() float64 { return metric(t, server.admin, `sluice_policy_rate{app="app"}`) }
	until(t, func() bool {
		poisson(t, client, 4, 200, 2*time.Second)
		return rate() > 100
	})
	if n := kept(); n < 2 {
		t.Errorf("%d policies are kept after a load that none was made for", n)
	}
	// Once the load is gone, the policy for little is in force again.
	until(t, func() bool {
		poisson(t, client, 4, 5, time.Second)
		return rate() == 20
	})
}
