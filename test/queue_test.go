package test

import (
	"strings"
	"sync"
	"testing"
)

// What an app says of its queue holds in a running server: queries are held back for company, wait no longer than they
// may, and are refused where too many wait.
func TestAnAppsQueueRulesHold(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "sluice.yaml", `version: 1
device_types: [{name: local, cores: 1}]
workers: [{name: here, backend: {kind: fake, latency: 300ms}}]
system: {router: fcfs, batcher: greedy}
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "off"}
apps:
  - name: together
    slo: {latency: 10s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 2]}]
    queue: {delay: 5s, preferred: [3]}
    variants: [{name: together, max_batch: 8}]
  - name: impatient
    slo: {latency: 10s}
    late: serve-late
    inputs: [{name: x, datatype: FP32, shape: [-1, 2]}]
    queue: {levels: [{timeout: 30ms, limit: 1}]}
    variants: [{name: impatient, max_batch: 1}]
placement: [{worker: here, app: together}, {worker: here, app: impatient}]
`)
	base := serve(t, "-f", file).url()
	until(t, func() bool { return get(base+"/v2/health/ready") == 200 })
	ask := func(app string, n int) (codes []int, texts []string) {
		var mu sync.Mutex
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				code, text := postTo(t, base+"/v2/models/"+app+"/infer", onesToAdd)
				mu.Lock()
				defer mu.Unlock()
				codes, texts = append(codes, code), append(texts, text)
			})
		}
		all.Wait()
		return codes, texts
	}
	codes, texts := ask("together", 3)
	for k := range codes {
		if codes[k] != 200 || !strings.Contains(texts[k], `"batch_size":3`) {
			t.Errorf("held back for company: %d %s", codes[k], texts[k])
		}
	}
	// One runs. Each of the others waits for longer than it may, or finds no place to wait.
	codes, texts = ask("impatient", 3)
	served, not := 0, 0
	for k := range codes {
		switch {
		case codes[k] == 200:
			served++
		case codes[k] == 503 && strings.Contains(texts[k], "Request timeout expired"):
			not++
		case codes[k] == 503 && strings.Contains(texts[k], "Exceeds maximum queue size"):
			not++
		}
	}
	if served != 1 || not != 2 {
		t.Errorf("%d served, %d not: %d %q", served, not, codes, texts)
	}
}
