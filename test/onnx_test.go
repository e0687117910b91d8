package test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// A model repository as a newcomer has it, from `config init` to an answer: real ONNX Runtime, real sockets, a real
// process that measures its models at the first start, serves, explains what it did, drains on SIGTERM, and whose
// journal replays to the same decisions.
func TestFromRepositoryToAnswer(t *testing.T) {
	t.Parallel()
	needsONNX(t)
	dir := t.TempDir()
	if err := onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic, 3).Write(filepath.Join(dir, "models", "echo",
		"1", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	status, text, errs := run(t.Context(), "config", "init", filepath.Join(dir, "models"))
	if status != 0 || !strings.Contains(text, "echo") {
		t.Fatalf("config init: %d %s %s", status, text, errs)
	}
	file := write(t, dir, "sluice.yaml", "%s", text)
	if status, out, errs := run(t.Context(), "config", "check", file); status != 0 {
		t.Fatalf("config check: %d %s %s\n%s", status, out, errs, text)
	}
	journal := filepath.Join(dir, "run.journal")
	c := serve(t, "-f", file, "--http", "127.0.0.1:0", "--grpc", "off", "--admin", "127.0.0.1:0", "--journal", journal,
		"--profile-first")
	base := c.url()
	until(t, func() bool { return get(base+"/v2/health/ready") == 200 })

	resp, err := http.Post(base+"/v2/models/echo/infer", "application/json",
		strings.NewReader(
			`{"id":"1","inputs":[{"name":"input","datatype":"FP32","shape":[2,3],"data":[[1,2,3],[4,5,6]]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	var answer struct {
		Outputs []struct {
			Name string
			Data []float64
		}
		Parameters struct {
			Variant string
			QueryID int `json:"query_id"`
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%d %s %v", resp.StatusCode, body, err)
	}
	if fmt.Sprint(answer.Outputs[0].Data) != "[1 2 3 4 5 6]" || answer.Parameters.Variant != "echo" {
		t.Errorf("the answer: %s", body)
	}
	status, text, errs = run(t.Context(), "explain", fmt.Sprint(answer.Parameters.QueryID), "--server",
		c.admin)
	if status != 0 || !strings.Contains(text, "2 item(s), because: as routed") ||
		!strings.Contains(text, "served after") {
		t.Errorf("explain: %d %s %s", status, text, errs)
	}
	status, text, errs = run(t.Context(), "load", "-f", file, "-u", base, "--request-rate-range", "50", "--duration",
		"1s", "--batch-size", "3")
	if status != 0 || !strings.Contains(text, "SLO violations") {
		t.Errorf("load over http: %d %s %s", status, text, errs)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	status, text, errs = run(t.Context(), "replay", journal)
	if status != 0 || !strings.Contains(text, "all the same") {
		t.Errorf("replay: %d %s %s", status, text, errs)
	}
	if status, text, errs := run(t.Context(), "simulate", "-f", file, "--profile",
		filepath.Join(dir, "sluice.profile.json"), "--request-rate-range", "50", "--duration", "10s",
		"--json"); status != 0 || !strings.Contains(text, `"violation_ratio"`) {
		t.Errorf("simulate: %d %.300s %s", status, text, errs)
	}
	if st, err := os.Stat(journal); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the journal holds what clients sent; its mode is %v", st.Mode())
	}
}

// put sends a JSON object to an admin address and fails unless it is taken.
func put(t *testing.T, url, object string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPut, url, strings.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("PUT %s %s: %d", url, object, resp.StatusCode)
	}
}

func get(url string) int {
	ctx, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func until(t *testing.T, f func() bool) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < 3*time.Minute; time.Sleep(50 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatal("it did not come to pass in three minutes")
}
