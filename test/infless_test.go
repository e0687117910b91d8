package test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/heldport"
)

// The parts of the one machine of this test, as device types, and the app of the configuration, as a stage.
const (
	oneThread, twoThreads = 1, 2
	heavy                 = 0
)

// packed is a server under INFless on one machine of two threads, with one app and room for functions.
type packed struct {
	serverless
	profile string
}

// newPacked says of the app's model that it takes longer than it does, so that what is planned does not hang on the
// machine of the test: one thread carries 64 queries/s in batches of four.
func newPacked(t *testing.T, options string) *packed {
	t.Helper()
	needsONNX(t)
	p := &packed{serverless: serverless{dir: t.TempDir()}}
	turning(t, filepath.Join(p.dir, "models", "heavy", "1", "model.onnx"), turned, 1)
	var points, loads []string
	for device, times := range map[string][]int{"local": {24, 30, 40}, "one": {30, 40, 60}, "two": {24, 30, 40}} {
		for k, ms := range times {
			points = append(points, fmt.Sprintf(
				`{"variant": "heavy", "device_type": %q, "batch": %d, "concurrency": 1, "samples": 9, "mean_us": `+
					`%[3]d, "stddev_us": 9, "p50_us": %[3]d, "p90_us": %[3]d, "p95_us": %[3]d, "p99_us": %[3]d}`,
				device, 1<<k, 1000*ms))
		}
		loads = append(loads, fmt.Sprintf(`{"variant": "heavy", "device_type": %q, "load_ms": 100}`, device))
	}
	p.profile = write(t, p.dir, "profile.json",
		`{"version": 1, "created": "2026-01-01T00:00:00Z", "points": [%s], "loads": [%s]}`, strings.Join(points, ","),
		strings.Join(loads, ","))
	front := heldport.Address(t)
	p.base, p.admin = "http://"+front, heldport.Address(t)
	p.file = write(t, p.dir, "sluice.yaml", `
version: 1
device_types:
  - {name: local, cores: 2}
  - {name: one, part: true, cores: 1}
  - {name: two, part: true, cores: 2}
workers: [{name: here, device_type: local}]
models: {repository: models}
profiles: [profile.json]
store: data
system: {name: infless, options: {packing: balanced, %s}}
apps:
  - {name: heavy, slo: {latency: 300ms}, cold_wait: 30s, variants: [{name: heavy, max_batch: 4}]}
server: {not_ready: 0s, http: %q, grpc: "off", admin: %q}
`, options, front, p.admin)
	return p
}

// call asks the app to turn a row.
func (p *packed) call(ctx context.Context) (status int, text string) {
	row := make([]string, width)
	for i := range row {
		row[i] = strconv.Itoa(i + 1)
	}
	ctx, done := context.WithTimeout(ctx, 40*time.Second)
	defer done()
	body := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,%d],"data":[%s]}]}`, width,
		strings.Join(row, ","))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+"/v2/models/heavy/infer", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer w.Body.Close()
	b, _ := io.ReadAll(w.Body)
	if want := fmt.Sprintf("[%d,%d,", width-turned+1, width-turned+2); w.StatusCode == 200 &&
		!strings.Contains(string(b), want) {
		return 0, fmt.Sprintf("a wrong answer: %.300s", b)
	}
	return w.StatusCode, string(b)
}

var onPart = regexp.MustCompile(`launch-instance i(\d+) worker 0\.\d+ stage (\d+) .* part (\d+)`)

// live reads from the decisions a server lists how many instances a stage has, on how many threads, and how many it
// ever had.
func (p *packed) live(t *testing.T, stage int) (instances, threads, ever int) {
	t.Helper()
	resp, err := http.Get("http://" + p.admin + "/debug/decisions?limit=100000")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	has := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		if m := onPart.FindStringSubmatch(line); m != nil && m[2] == strconv.Itoa(stage) {
			part, _ := strconv.Atoi(m[3])
			has[m[1]] = map[int]int{oneThread: 1, twoThreads: 2}[part]
			ever++
		} else if m := stopped.FindStringSubmatch(line); m != nil {
			delete(has, m[1])
		}
	}
	for _, n := range has {
		threads += n
	}
	return len(has), threads, ever
}

// INFless over real models on one machine. An app without instances is started by its first query, which waits for it.
// A burst gives it larger or more parts. Its last instance is stopped when no calls come, and the next query starts it
// again. A function that is deployed meanwhile behaves alike; its latency is measured on the parts. The journal
// replays.
func TestInflessLive(t *testing.T) {
	p := newPacked(t, "keep: keepalive, alive: 2s")
	recorded := filepath.Join(p.dir, "run.journal")
	server := sluice(t, "serve", "-f", p.file, "--journal", recorded)
	until(t, func() bool { return get(p.base+"/v2/health/ready") == 200 })
	listening(t, p.admin)

	_, _, before := p.live(t, heavy)
	if before != 0 {
		t.Errorf("%d instances were started before the first query", before)
	}
	if status, text := p.call(t.Context()); status != 200 {
		t.Fatalf("the first query: %d %s", status, text)
	}
	if _, threads, ever := p.live(t, heavy); ever == before || threads > 1 {
		t.Errorf("the first query has started %d instances, and %d threads are taken, want 1 at most", ever-before,
			threads)
	}

	// A burst of 100 queries/s, until the machine is all the app's.
	var calls sync.WaitGroup
	var asked, answered atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	calls.Go(func() {
		random := rand.New(rand.NewPCG(1, 1))
		for ctx.Err() == nil {
			calls.Go(func() {
				asked.Add(1)
				switch status, text := p.call(t.Context()); status {
				case 200:
					answered.Add(1)
				case 429, 503, 504: // more than the machine carries
				default:
					t.Errorf("in the burst: %d %s", status, text)
				}
			})
			time.Sleep(time.Duration(random.ExpFloat64() * 1e7))
		}
	})
	until(t, func() bool { _, threads, _ := p.live(t, heavy); return threads == 2 })
	stop()
	calls.Wait()
	t.Logf("%d of %d queries of the burst were answered", answered.Load(), asked.Load())
	if answered.Load() == 0 {
		t.Error("no query of the burst was answered")
	}

	// Silence, and a start after it.
	for range 2 {
		until(t, func() bool { n, _, _ := p.live(t, heavy); return n == 0 })
		if status, text := p.call(t.Context()); status != 200 {
			t.Errorf("after a silence: %d %s", status, text)
		}
	}

	// A function is deployed, let go and started in the same way.
	if status, out, errs := p.run(t, "deploy", "-f", p.adds(t, "light", 1, "")); status != 0 {
		t.Fatalf("deploy: %d %s%s", status, out, errs)
	}
	for range 2 {
		until(t, func() bool { n, _, _ := p.live(t, heavy+1); return n == 0 })
		if status, y, text := p.infer("light"); status != 200 || y != 2 {
			t.Errorf("the function: %d %s", status, text)
		}
	}
	if _, _, ever := p.live(t, heavy+1); ever < 2 {
		t.Errorf("the function was started %d times, want twice at least", ever)
	}

	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	if text, err := os.ReadFile(recorded); err != nil || !strings.Contains(string(text), `"Part":`) {
		t.Errorf("no plan of the journal gives a part of a machine: %v", err)
	}
	if status, out, errs := run(t.Context(), "replay", recorded); status != 0 ||
		!strings.Contains(out, "all the same") {
		t.Errorf("replay: %d %s%s", status, out, errs)
	}
}
