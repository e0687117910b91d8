package test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// One of two model servers hangs, then is slow, then fails in turns. Few queries are lost to it in each phase, it is
// asked less and less, and none waits for longer than its deadline and a bound.
func TestUnsteadyModelServers(t *testing.T) {
	t.Parallel()
	bad, good := &modelServer{}, &modelServer{}
	url := twoServers(t, bad, good).url() + "/v2"
	infer := func() int { code, _ := answered(http.MethodPost, url+"/models/app/infer", oneQuery); return code }
	waitForBoth(t, bad, good, func() (int, string) { return infer(), "" })

	// load sends queries from four clients for as long as more is true. Of those that are lost some are only late.
	load := func(more func(n int64) bool) (sent, lost, late int64, longest time.Duration) {
		var n, failed, dropped atomic.Int64
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				for more(n.Add(1)) {
					begun := time.Now()
					switch infer() {
					case http.StatusOK:
					case http.StatusGatewayTimeout:
						dropped.Add(1)
						failed.Add(1)
					default:
						failed.Add(1)
					}
					mu.Lock()
					longest = max(longest, time.Since(begun))
					mu.Unlock()
				}
			}()
		}
		all.Wait()
		return n.Load(), failed.Load(), dropped.Load(), longest
	}
	// Queries that hang with it are lost: each time it is tried again at most one for each client, and it is tried
	// after 0, 0.25, 0.75 s and so on. How many are sent meanwhile is up to how busy this machine is.
	bad.hang()
	sent, lost, _, longest := load(func(int64) bool { return bad.hung.Load() < 2 })
	t.Logf("hung: %d sent, %d lost, longest %v", sent, lost, longest)
	if lost > 2*5 {
		t.Errorf("one server hangs: %d of %d queries were lost", lost, sent)
	}
	if longest > 10*time.Second {
		t.Errorf("a query with a deadline of 500 ms was answered after %v", longest)
	}
	bad.release()

	bad.delay.Store(int64(100 * time.Millisecond))
	sent, lost, late, _ := load(func(n int64) bool { return n < 500 })
	t.Logf("slow: %d sent, %d lost, %d of them late", sent, lost, late)
	if lost > late+5 {
		t.Errorf("one server is slow: %d of %d queries were lost", lost, sent)
	}
	bad.delay.Store(0)

	// It fails every other time that it is asked thrice: with two bad answers of three it is ejected and comes back,
	// and clients see none of it. Where this machine is busy with other things some queries are late.
	before := bad.asked.Load()
	bad.flaps.Store(true)
	sent, lost, late, _ = load(func(n int64) bool { return n < 2000 })
	asked := bad.asked.Load() - before
	t.Logf("flapping: %d sent, %d lost, %d of them late, asked %d times", sent, lost, late, asked)
	if lost > late || asked*4 > sent {
		t.Errorf("one server flaps: %d of %d queries were lost, it was asked %d times", lost, sent, asked)
	}
}

// twoServers are two remote servers behind one process of sluice, with a profile for both.
func twoServers(t *testing.T, a, b *modelServer) *server {
	t.Helper()
	dir := t.TempDir()
	file := write(t, dir, "sluice.yaml", `
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
    variants: [{name: m, max_batch: 8}]
placement: [{worker: a, app: app}, {worker: b, app: app}]
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "127.0.0.1:0"}
`, startModelServer(t, a), startModelServer(t, b))
	point := func(batch int) string {
		return fmt.Sprintf(`{"variant": "m", "device_type": "any", "batch": %d, "concurrency": 1, "samples": 100,
 "mean_us": 2000, "stddev_us": 500, "p50_us": 2000, "p90_us": 3000, "p95_us": 3500, "p99_us": 4000}`, batch)
	}
	write(t, dir, "profile.json", `{"version": 1, "created": "2026-01-01T00:00:00Z", "points": [%s,%s], "loads": []}`,
		point(1), point(8))
	s := serve(t, "-f", file)
	untilStatus(t, s.url()+"/v2/models/app/ready", 200)
	return s
}
