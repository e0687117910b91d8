package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/engine/journal"
)

// ran is a batch as a journal has it.
type ran struct {
	instance, items int
	expected, took  time.Duration
}

var started = regexp.MustCompile(`^start-batch b(\d+) on i(\d+) variant \d+, (\d+) items, expected ([^:]+):`)

// batches reads the batches of a journal in the order in which they began, those that ended.
func batches(t *testing.T, path string) []ran {
	t.Helper()
	var out []ran
	place := make(map[uint64]int)
	unmeasured(t, path, func(s *journal.Step) {
		for _, in := range s.In {
			if in.Kind == engine.BatchDone {
				out[place[uint64(in.Batch)]].took = in.Took
			}
		}
		for _, text := range s.Out {
			m := started.FindStringSubmatch(text)
			if m == nil {
				continue
			}
			id, _ := strconv.ParseUint(m[1], 10, 64)
			b := ran{}
			b.instance, _ = strconv.Atoi(m[2])
			b.items, _ = strconv.Atoi(m[3])
			var err error
			if b.expected, err = time.ParseDuration(m[4]); err != nil {
				t.Fatal(err)
			}
			place[id] = len(out)
			out = append(out, b)
		}
	})
	return slices.DeleteFunc(out, func(b ran) bool { return b.took == 0 })
}

// A server that knows nothing of the latency of its two machines, of which one is better for small queries and the
// other for large ones: it begins to serve at once, learns, and sends every query where it ends first. What is learned
// is held against what was measured in this very run. Prices can be changed meanwhile, and the journal replays.
func TestLearningLive(t *testing.T) {
	dir := t.TempDir()
	recorded := filepath.Join(dir, "run.journal")
	file := write(t, dir, "sluice.yaml", `
version: 1
device_types: [{name: accelerator, price_per_hour: 0.5}, {name: processor, price_per_hour: 0.1}]
workers:
  - {name: a, device_type: accelerator, backend: {kind: fake, latency: 40ms, latency_per_item: 400us}}
  - {name: p, device_type: processor, backend: {kind: fake, latency: 12ms, latency_per_item: 4ms}}
system: {router: earliestfinish, batcher: single, scaler: mixshift, options: {learn: true}}
apps:
  - name: app
    slo: {latency: 5s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 1]}]
    variants: [{name: v, max_batch: 64}]
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "127.0.0.1:0"}
`)
	server := serve(t, "-f", file, "--journal", recorded)
	base := server.url()
	until(t, func() bool { return get(base+"/v2/health/ready") == 200 })
	ask := func(items int) {
		body := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[%d,1],"data":[%s]}]}`, items,
			strings.TrimSuffix(strings.Repeat("1,", items), ","))
		resp, err := http.Post(base+"/v2/models/app/infer", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 {
			t.Fatalf("%d items: %d %s", items, resp.StatusCode, text)
		}
	}
	const last = 12
	for range 6 {
		for _, items := range []int{1, 40, 3, 60, 10, 25} {
			ask(items)
		}
	}
	for range last {
		ask(1)
		ask(40)
	}

	prices := "http://" + server.admin + "/prices"
	put(t, prices, `{"device_type": "processor", "price_per_hour": 0.03}`)
	resp, err := http.Get(prices)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var listed []struct {
		DeviceType   string  `json:"device_type"`
		PricePerHour float64 `json:"price_per_hour"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&listed); err != nil || len(listed) != 2 ||
		listed[0].PricePerHour != 0.5 || listed[1].PricePerHour != 0.03 {
		t.Errorf("prices: %v %v", listed, err)
	}
	if code := get("http://" + server.admin + "/debug/decisions?limit=4000"); code != 200 {
		t.Errorf("decisions, requests for plans among them: %d", code)
	}

	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	all := batches(t, recorded)
	// By instance and size: what was measured, the median.
	median := func(instance, items int) time.Duration {
		var took []time.Duration
		for _, b := range all {
			if b.instance == instance && b.items == items {
				took = append(took, b.took)
			}
		}
		slices.Sort(took)
		if len(took) == 0 {
			return 0
		}
		return took[len(took)/2]
	}
	for _, items := range []int{1, 40} {
		best := 1
		if median(2, items) > 0 && (median(1, items) == 0 || median(2, items) < median(1, items)) {
			best = 2
		}
		there, believed := 0, time.Duration(0)
		for _, b := range all[len(all)-2*last:] {
			if b.items == items && b.instance == best {
				there, believed = there+1, b.expected
			}
		}
		if m := median(best, items); there > 0 && (believed < m*8/10 || believed > m*12/10) {
			t.Errorf("%d items on instance %d are believed to take %v, the median measured is %v", items, best,
				believed, m)
		}
		t.Logf("%d items: instance %d, measured %v and %v on the two, %d of the last %d queries went there", items,
			best, median(1, items), median(2, items), there, last)
		if there < last*3/4 {
			t.Errorf("%d of the last %d queries of %d items went to instance %d, where they end first", there, last,
				items, best)
		}
	}
	if status, out, errs := run(t.Context(), "replay", recorded); status != 0 {
		t.Errorf("replay: %d %s%s", status, out, errs)
	}
}

// Real models are served at once, without being measured first, by a system that learns.
func TestLearningServesModelsAtOnce(t *testing.T) {
	needsONNX(t)
	dir := t.TempDir()
	products(t, filepath.Join(dir, "models", "v", "1", "model.onnx"), 20)
	recorded := filepath.Join(dir, "run.journal")
	file := write(t, dir, "sluice.yaml", `
version: 1
device_types: [{name: core, cores: 1}]
workers: [{name: w}]
models: {repository: models}
system: {router: earliestfinish, batcher: single, options: {learn: true}}
apps: [{name: app, slo: {latency: 5s}, variants: [{name: v, max_batch: 4}]}]
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "127.0.0.1:0"}
`)
	server := serve(t, "-f", file, "--journal", recorded)
	base := server.url()
	until(t, func() bool { return get(base+"/v2/health/ready") == 200 })
	if _, err := os.Stat(filepath.Join(dir, "sluice.profile.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the server has measured its model: %v", err)
	}
	body := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,%d],"data":[%s]}]}`, width,
		strings.TrimSuffix(strings.Repeat("1,", width), ","))
	for range 8 {
		resp, err := http.Post(base+"/v2/models/app/infer", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatalf("status %d", resp.StatusCode)
		}
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	all := batches(t, recorded)
	if n := len(all); n != 8 || all[0].expected >= all[0].took || all[n-1].expected < 10*all[0].expected {
		t.Errorf("%d batches: the first was believed to take %v and took %v, the last %v and %v", n, all[0].expected,
			all[0].took, all[n-1].expected, all[n-1].took)
	}
}
