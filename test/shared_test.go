package test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/serving/report"
)

var (
	sharedLoads = flag.String("loads", "0.3",
		"loads of TestMachineSharedLive as fractions of what the machine carries, with commas between them")
	sharedSeconds = flag.Float64("seconds", 3, "of arrivals, for each load of TestMachineSharedLive")
)

// sharedModels writes the models of two apps with two variants each, and of three stages of a graph: dense layers, so
// many that a query takes some milliseconds. What a query costs outside of the model is then a small part.
func sharedModels(t *testing.T, dir string) {
	t.Helper()
	const narrow, wide = 64, 1024
	weights := func(n int) []float32 {
		out := make([]float32, n)
		for k := range out {
			out[k] = float32(k%7-3) / wide
		}
		return out
	}
	for name, layers := range map[string]int{
		"quick": 20, "slow": 80, "coarse": 30, "fine": 100, "one": 40, "two": 40, "three": 40,
	} {
		g := onnxmodel.NewGraph(name).Input("x", onnxmodel.Float32, onnxmodel.Symbolic, narrow)
		g.Initializer("first", weights(narrow*wide), narrow, wide)
		g.Initializer("middle", weights(wide*wide), wide, wide)
		g.Initializer("last", weights(wide*narrow), wide, narrow)
		g.Node("MatMul", []string{"x", "first"}, []string{"h0"})
		for k := range layers {
			g.Node("MatMul", []string{fmt.Sprint("h", k), "middle"}, []string{fmt.Sprint("h", k+1)})
		}
		g.Node("MatMul", []string{fmt.Sprint("h", layers), "last"}, []string{"y"})
		g.Output("y", onnxmodel.Float32, onnxmodel.Symbolic, narrow)
		if err := g.Write(filepath.Join(dir, name, "1", "model.onnx")); err != nil {
			t.Fatal(err)
		}
	}
}

const sharedFile = `version: 1
device_types: [{name: local, cores: 2}]
workers: [{name: here}]
models: {repository: models}
profiles: [profile.json]
apps:
  - name: animals
    slo: {latency: 1s}
    variants: [{name: quick, accuracy: 0.8, max_batch: 8}, {name: slow, accuracy: 0.9, max_batch: 8}]
  - name: signs
    slo: {latency: 1s}
    variants: [{name: coarse, accuracy: 0.7, max_batch: 8}, {name: fine, accuracy: 0.95, max_batch: 8}]
  - name: chain
    slo: {latency: 1s}
    stages:
      - {name: one, variants: [{name: one, max_batch: 8}], next: [{to: two}]}
      - {name: two, variants: [{name: two, max_batch: 8}], inputs: {x: y}, next: [{to: three}]}
      - {name: three, variants: [{name: three, max_batch: 8}], inputs: {x: y}}
`

// Two apps and a graph of three stages share one worker, live with real models and simulated with the same arrivals:
// violations and accuracy are the same within a point. With -loads 0.3,0.6,0.9 -v it prints the latencies, too.
func TestMachineSharedLive(t *testing.T) {
	needsONNX(t)
	dir := t.TempDir()
	sharedModels(t, filepath.Join(dir, "models"))
	file, profile := write(t, dir, "sluice.yaml", sharedFile), filepath.Join(dir, "profile.json")
	if status, out, errs := run(t.Context(), "profile", "-f", file, "-o", profile, "--max-time", "150ms"); status != 0 {
		t.Fatalf("profile: %d %s %s", status, out, errs)
	}
	measured, err := profiler.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("beside the models: %+v", measured.Overheads)
	alone := make(map[string]float64) // seconds of a batch of one, by variant
	for _, p := range measured.Points {
		if p.Batch == 1 && p.Concurrency == 1 {
			alone[p.Variant] = p.Mean / 1e6
		}
	}
	t.Logf("seconds of a query alone: %v", alone)
	base := serve(t, "-f", file, "--http", "127.0.0.1:0", "--grpc", "off", "--admin", "off").url()
	until(t, func() bool { // the variants that are loaded last are there, too
		return get(base+"/v2/health/ready") == 200 && get(base+"/v2/models/animals/versions/2/ready") == 200 &&
			get(base+"/v2/models/signs/versions/2/ready") == 200
	})
	for _, text := range strings.Split(*sharedLoads, ",") {
		var load float64
		if _, err := fmt.Sscan(text, &load); err != nil {
			t.Fatalf("-loads: %q: %v", text, err)
		}
		// A third of the machine's time for each, were every query to run alone on the most accurate variants.
		workload := fmt.Sprintf(`{"seed": 1, "duration_s": %v, "apps": [{"app": "animals", "rate": %.3f},
			{"app": "signs", "rate": %.3f}, {"app": "chain", "rate": %.3f}]}`, *sharedSeconds, load/3/alone["slow"],
			load/3/alone["fine"], load/3/(alone["one"]+alone["two"]+alone["three"]))
		queries, recorded := write(t, dir, "workload.yaml", "%s", workload), filepath.Join(dir, "run.jsonl")
		if status, out, errs := run(t.Context(), "load", "-f", file, "-u", base, "--workload", queries, "--record",
			recorded); status != 0 {
			t.Fatalf("load: %d %s %s", status, out, errs)
		}
		status, out, errs := run(t.Context(), "simulate", "-f", file, "--replay", recorded, "--json", "--no-bound")
		if status != 0 {
			t.Fatalf("simulate: %d %s %s", status, out, errs)
		}
		var both struct{ Live, Simulated report.Report }
		if err := json.Unmarshal([]byte(out), &both); err != nil {
			t.Fatal(err)
		}
		live, simulated := &both.Live.Overall, &both.Simulated.Overall
		if live.EffectiveAccuracy == nil || simulated.EffectiveAccuracy == nil {
			t.Fatalf("load %v: no query was served", load)
		}
		t.Logf("load %v, %d queries: live %.2f %% violations, accuracy %.4f, p50 %.2f, p95 %.2f ms; simulated "+
			"%.2f %%, %.4f, %.2f, %.2f ms", load, live.Offered, 100*live.ViolationRatio, *live.EffectiveAccuracy,
			live.Latency.P50, live.Latency.P95, 100*simulated.ViolationRatio, *simulated.EffectiveAccuracy,
			simulated.Latency.P50, simulated.Latency.P95)
		if load > 0.5 {
			continue // on a machine that others use, too, only what is far from its limit can be held to a point
		}
		if math.Abs(live.ViolationRatio-simulated.ViolationRatio) > 0.01 ||
			math.Abs(*live.EffectiveAccuracy-*simulated.EffectiveAccuracy) > 0.01 {
			t.Errorf("load %v: live and simulated differ by more than a point", load)
		}
	}
}
