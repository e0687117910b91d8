package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/serving"
)

type traceEntry struct {
	ID     int    `json:"id"`
	Parent int    `json:"parent_id"`
	Model  string `json:"model_name"`
	Error  string `json:"error"`
	Times  []struct {
		Name string
		NS   int64
	} `json:"timestamps"`
}

// traces reads a trace file, which is whole while the server runs.
func traces(t *testing.T, path string) (out []traceEntry) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

// Trace settings take effect: one of so many requests is traced, so many in all, in so many files, with the times of
// its stages. The file is one of a configured folder.
func TestTraceSettingsTakeEffect(t *testing.T) {
	dir := t.TempDir()
	s := start(t, server.Config{Traces: dir, ModelControl: true})
	s.p.infer = func(_ context.Context, r *dataplane.Request) (*dataplane.Response, error) {
		if r.Priority == 9 {
			return nil, &dataplane.Error{Outcome: serving.Failed, Reason: "the model failed", Cause: errors.New("no")}
		}
		out := &dataplane.Response{Variant: 1, Outputs: r.Inputs[:0]}
		if r.Timings {
			out.Stages = []dataplane.StageTime{
				{Stage: "first", Queue: time.Millisecond, Run: 2 * time.Millisecond},
				{Stage: "second", Ready: 3 * time.Millisecond, Run: time.Millisecond},
			}
		}
		return out, nil
	}
	set := func(change string, code int, want string) {
		t.Helper()
		if got, _, body := s.do(t, "POST", "/v2/trace/setting", change); got != code || !strings.Contains(body, want) {
			t.Fatalf("%s: %d %s", change, got, body)
		}
	}
	infer := func(parameters string) {
		t.Helper()
		_, _, body := s.do(t, "POST", model+"/infer", `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],`+
			`"data":[1,2]}]`+parameters+`}`)
		if strings.Contains(body, "stage.first") {
			t.Errorf("nobody asked for the times of stages: %s", body)
		}
	}
	infer("")
	for _, bad := range []string{"../x", "/etc/x", ".hidden", "a/b", ""} {
		set(`{"trace_file":"`+bad+`"}`, 400, "telemetry.traces")
	}
	set(`{"trace_level":["TENSORS"]}`, 501, "TIMESTAMPS")
	set(`{"trace_level":["TIMESTAMPS"],"trace_rate":"2","trace_count":"2","trace_file":"t.json"}`, 200, "t.json")
	for range 10 {
		infer("")
	}
	got := traces(t, filepath.Join(dir, "t.json"))
	if len(got) != 6 {
		t.Fatalf("%d traces, want 2 of requests with 2 steps each: %+v", len(got), got)
	}
	var names []string
	for _, x := range got[1].Times {
		names = append(names, x.Name)
	}
	if got[0].Model != "digits/v1" || len(got[0].Times) != 2 || got[1].Model != "first" || got[1].Parent != got[0].ID ||
		strings.Join(names, " ") != "QUEUE_START COMPUTE_START COMPUTE_INPUT_END COMPUTE_OUTPUT_START COMPUTE_END" ||
		got[1].Times[1].NS-got[1].Times[0].NS != 1e6 || got[1].Times[4].NS-got[1].Times[1].NS != 2e6 {
		t.Errorf("%+v", got[:3])
	}
	set(`{"trace_rate":"1","trace_count":"-1","log_frequency":"1","trace_file":"each"}`, 200, "each")
	infer("")
	infer(`,"parameters":{"priority":9}`)
	if a, b := traces(t, filepath.Join(dir, "each.0")), traces(t, filepath.Join(dir, "each.1")); len(a) != 3 ||
		len(b) != 1 || !strings.Contains(b[0].Error, "the model failed") {
		t.Errorf("%+v\n%+v", a, b)
	}
	set(`{"trace_level":["OFF"]}`, 200, "OFF")
	infer("")
	if _, err := os.Stat(filepath.Join(dir, "each.2")); err == nil {
		t.Error("a request was traced although traces are off")
	}
}
