package test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// A query alone on an idle server is answered, whatever the system, and seldom waits for others that do not come. With
// systems that wait until the last instant every one of them was dropped, since timers fire a moment late.
func TestLoneQueriesAreAnswered(t *testing.T) {
	for _, system := range []string{
		"sluice", "proteus", "proteus-batching", "triton-like", "infaas-accuracy", "nexus-batching",
	} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			file := write(t, t.TempDir(), "sluice.yaml", `
version: 1
device_types: [{name: any}]
workers: [{name: w, backend: {kind: fake, latency: 5ms}}]
system: %s
apps:
  - name: echo
    slo: {latency: 2s}
    demand: 10
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: echo, max_batch: 8}]
server: {not_ready: 0s, grpc: "off", admin: "off", http: "127.0.0.1:0"}
`, system)
			url := serve(t, "-f", file).url() + "/v2/"
			untilStatus(t, url+"models/echo/ready", 200)
			waited, dropped := 0, ""
			for range 10 {
				// Where other programs keep this one from the processor at the last instant, a query is dropped.
				code, body := answered(http.MethodPost, url+"models/echo/infer", oneQuery)
				if code != 200 {
					dropped += "\n" + body
				}
				// A query that waits for others waits for nearly all of its two seconds.
				if m := regexp.MustCompile(`"queue_us":(\d+)`).FindStringSubmatch(body); m != nil && len(m[1]) > 6 {
					waited++
				}
			}
			if strings.Count(dropped, "\n") > 3 {
				t.Errorf("of ten queries were dropped:%s", dropped)
			}
			if waited > 5 {
				t.Errorf("%d of ten queries waited for others", waited)
			}
		})
	}
}
