package test

import (
	"math/rand/v2"
	"net/http"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/heldport"
)

// Ten scripts of the fault campaign with processes and signals: a server in front of two others, which are stopped,
// continued, killed and started again in random order, sometimes both. Every query is answered, none long after its
// deadline, and once all is well the server serves as before.
func TestSignalsInAllOrders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "back.yaml", `
version: 1
device_types: [{name: any}]
workers: [{name: w, backend: {kind: fake, latency: 2ms}}]
profiles: [profile.json]
system: {router: shortestqueue, batcher: greedy}
apps: [{name: m, slo: {latency: 1s}, inputs: [{name: x, datatype: FP32, shape: [-1, 4]}], variants: [{name: m}]}]
placement: [{worker: w, app: m}]
server: {not_ready: 0s, http: "off", admin: "off"}
`)
	write(t, dir, "profile.json", `{"version": 1, "created": "2026-01-01T00:00:00Z", "points": [{"variant": "m",
 "device_type": "any", "batch": 1, "concurrency": 1, "samples": 100, "mean_us": 4000, "stddev_us": 500, "p50_us": 4000,
 "p90_us": 5000, "p95_us": 6000, "p99_us": 9000}], "loads": []}`)
	at := []string{heldport.Address(t), heldport.Address(t)}
	start := func(k int) *exec.Cmd {
		return sluice(t, "serve", "-f", dir+"/back.yaml", "--grpc", at[k])
	}
	backs := []*exec.Cmd{start(0), start(1)}
	file := write(t, dir, "front.yaml", `
version: 1
device_types: [{name: any}]
workers:
  - {name: a, backend: {kind: openinference, address: %q}}
  - {name: b, backend: {kind: openinference, address: %q}}
profiles: [profile.json]
system: {router: shortestqueue, batcher: greedy}
apps:
  - name: app
    slo: {latency: 500ms}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: m, max_batch: 1}]
placement: [{worker: a, app: app}, {worker: b, app: app}]
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "off"}
`, at[0], at[1])
	url := serve(t, "-f", file).url() + "/v2/models/app"
	untilStatus(t, url+"/ready", http.StatusOK)

	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var over atomic.Bool
		var sent, good atomic.Int64
		var clients sync.WaitGroup
		for range 3 {
			clients.Go(func() {
				for !over.Load() {
					begun := time.Now()
					code, text := answered(http.MethodPost, url+"/infer", oneQuery)
					sent.Add(1)
					switch {
					case code == http.StatusOK:
						good.Add(1)
					case code < 500 || code > 504:
						t.Errorf("script %d: %d %s", seed, code, text)
					}
					// A run that hangs counts as lost after a second, and the machine of this test is slow.
					if took := time.Since(begun); took > 15*time.Second {
						t.Errorf("script %d: a query with a deadline of 500 ms was answered after %v", seed, took)
					}
				}
			})
		}
		stopped := [2]bool{}
		for range 3 {
			k := rng.IntN(2)
			switch {
			case stopped[k]:
				_ = backs[k].Process.Signal(syscall.SIGCONT)
				stopped[k] = false
			case rng.IntN(2) == 0:
				_ = backs[k].Process.Signal(syscall.SIGSTOP)
				stopped[k] = true
			default:
				_ = backs[k].Process.Kill()
				_ = backs[k].Wait()
				time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
				backs[k] = start(k)
			}
			time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
		}
		for k, is := range stopped {
			if is {
				_ = backs[k].Process.Signal(syscall.SIGCONT)
			}
		}
		until(t, func() bool {
			code, _ := answered(http.MethodPost, url+"/infer", oneQuery)
			return code == http.StatusOK
		})
		over.Store(true)
		clients.Wait()
		t.Logf("script %d: %d queries, %d answered well", seed, sent.Load(), good.Load())
	}
	untilStatus(t, url+"/ready", http.StatusOK)
}
