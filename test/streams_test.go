package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A server whose last stage follows things from frame to frame is killed and started again, and then stopped and
// started again: streams go on where they were, and one that has ended begins anew. Answers tell of every stage when
// asked.
func TestStreamsOutliveTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, dir, "sluice.yaml", `version: 1
device_types: [{name: local, cores: 2}]
workers: [{name: here}]
profiles: [profile.json]
server: {not_ready: 0s, states: states}
apps:
  - name: things
    slo: {latency: 5s}
    inputs: [{name: boxes, datatype: FP32, shape: [-1, -1, 4]}, {name: scores, datatype: FP32, shape: [-1, -1]}]
    stages:
      - {name: keep, function: nms, with: {score: 0.5}, next: [{to: follow}]}
      - {name: follow, function: track}
`)
	if status, out, errs := run(t.Context(), "profile", "-f", file, "-o", filepath.Join(dir, "profile.json"),
		"--max-batch", "1", "--max-time", "20ms"); status != 0 {
		t.Fatalf("profile: %d %s %s", status, out, errs)
	}
	var base string
	start := func() (stop func(how syscall.Signal)) {
		c := serve(t, "-f", file, "--http", "127.0.0.1:0", "--grpc", "off", "--admin", "off")
		base = c.url()
		until(t, func() bool { return get(base+"/v2/health/ready") == 200 })
		return func(how syscall.Signal) {
			if err := c.Process.Signal(how); err != nil {
				t.Fatal(err)
			}
			_ = c.Wait()
		}
	}
	// ask shows a frame with things at some places and returns the ages of the things, best first.
	ask := func(parameters string, places ...int) (ages []int, said map[string]any) {
		t.Helper()
		var boxes, scores []string
		for k, p := range places {
			boxes = append(boxes, fmt.Sprintf("%d,0,%d,10", 100*p, 100*p+10))
			scores = append(scores, fmt.Sprint(0.9-0.1*float64(k)))
		}
		n := len(places)
		resp, err := http.Post(base+"/v2/models/things/infer", "application/json", strings.NewReader(fmt.Sprintf(
			`{"parameters":{%s},"inputs":[{"name":"boxes","datatype":"FP32","shape":[1,%d,4],`+
				`"data":[%s]},{"name":"scores","datatype":"FP32","shape":[1,%d],"data":[%s]}]}`,
			parameters, n, strings.Join(boxes, ","), n, strings.Join(scores, ","))))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		var answer struct {
			Parameters map[string]any
			Outputs    []struct {
				Name string
				Data []int
			}
		}
		if err := json.Unmarshal(body, &answer); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d %s %v", resp.StatusCode, body, err)
		}
		for _, o := range answer.Outputs {
			if o.Name == "ages" {
				ages = o.Data
			}
		}
		return ages, answer.Parameters
	}
	expect := func(parameters string, places, want []int) {
		t.Helper()
		if got, _ := ask(parameters, places...); !slices.Equal(got, want) {
			t.Errorf("%s, things at %v have ages %v, want %v", parameters, places, got, want)
		}
	}
	stop := start()
	expect(`"sequence_id":"door"`, []int{1, 2}, []int{1, 1})
	expect(`"sequence_id":"door"`, []int{2, 3}, []int{2, 1})
	expect(`"sequence_id":"yard"`, []int{2}, []int{1})
	expect(`"sequence_id":"short"`, []int{1}, []int{1})
	expect(`"sequence_id":"short","sequence_end":true`, []int{1}, []int{2})
	time.Sleep(time.Second) // states are written behind the answers
	stop(syscall.SIGKILL)

	stop = start()
	expect(`"sequence_id":"door"`, []int{3, 2}, []int{2, 3})
	expect(`"sequence_id":"short"`, []int{1}, []int{1})
	stop(syscall.SIGTERM) // which writes what is left, at once

	stop = start()
	expect(`"sequence_id":"door"`, []int{3, 2}, []int{3, 4})
	expect(`"sequence_id":"yard"`, []int{2}, []int{2})
	expect(`"sequence_id":"door","sequence_start":true`, []int{3, 2}, []int{1, 1})
	_, said := ask(`"sequence_id":"door","stage_timings":true`, 3, 2)
	for _, x := range []string{
		"stage.keep.run_us", "stage.follow.run_us", "stage.follow.queue_us", "stage.follow.ready_us",
	} {
		if v, ok := said[x].(float64); !ok || v < 0 {
			t.Errorf("%s is %v", x, said[x])
		}
	}
	stop(syscall.SIGTERM)
}
