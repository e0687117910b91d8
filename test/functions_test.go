package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/cli"
	"github.com/sluice-serving/sluice/internal/heldport"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// serverless is a server of functions in a process of its own.
type serverless struct {
	dir, file   string
	base, admin string
}

func newServerless(t *testing.T) *serverless {
	t.Helper()
	needsONNX(t)
	s := &serverless{dir: t.TempDir()}
	front := heldport.Address(t)
	s.base, s.admin = "http://"+front, heldport.Address(t)
	s.file = write(t, s.dir, "sluice.yaml", `
version: 1
device_types: [{name: local, cores: 2}]
workers: [{name: here}]
store: data
server: {not_ready: 0s, http: %q, grpc: "off", admin: %q}
`, front, s.admin)
	return s
}

func (s *serverless) start(t *testing.T) *exec.Cmd {
	t.Helper()
	c := sluice(t, "serve", "-f", s.file)
	until(t, func() bool { return get(s.base+"/v2/health/ready") == 200 })
	listening(t, s.admin)
	return c
}

// adds writes a model that adds a number to its input, and a fn.yaml for it.
func (s *serverless) adds(t *testing.T, name string, number float32, more string) string {
	t.Helper()
	file := fmt.Sprintf("%s-%v", name, number)
	g := onnxmodel.NewGraph("adds").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 2).Initializer("number",
		[]float32{number}, 1).
		Node("Add", []string{"x", "number"}, []string{"y"}).Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 2)
	if err := g.Write(filepath.Join(s.dir, file+".onnx")); err != nil {
		t.Fatal(err)
	}
	return write(t, s.dir, file+".yaml",
		"name: %s\nmodel: %s.onnx\nslo: {latency: 1s}\nmax_batch: 2\nlabels: {adds: \"%v\"}\n%s", name, file, number,
		more)
}

// run runs a command of the program against the server.
func (s *serverless) run(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	return run(t.Context(), append(args, "--config", s.file)...)
}

// infer asks a function to add to 1.
func (s *serverless) infer(name string) (status int, y float64, text string) {
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/v2/models/"+name+"/infer",
		strings.NewReader(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,1]}]}`))
	if err != nil {
		return 0, 0, err.Error()
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, 0, err.Error()
	}
	defer w.Body.Close()
	b, _ := io.ReadAll(w.Body)
	var answer struct{ Outputs []struct{ Data []float64 } }
	if json.Unmarshal(b, &answer) == nil && len(answer.Outputs) == 1 && len(answer.Outputs[0].Data) == 2 {
		y = answer.Outputs[0].Data[0]
	}
	return w.StatusCode, y, string(b)
}

func (s *serverless) list(t *testing.T) []functions.Status {
	t.Helper()
	status, out, errs := s.run(t, "list", "--json")
	var all []functions.Status
	if err := json.Unmarshal([]byte(out), &all); status != 0 || err != nil {
		t.Fatalf("list: %d %v %s%s", status, err, out, errs)
	}
	return all
}

// A server that starts with no apps at all: functions are deployed, called, replaced under load without a failed query,
// deleted, and after a kill all that were acknowledged are back.
func TestFunctions(t *testing.T) {
	s := newServerless(t)
	c := s.start(t)
	if status, out, _ := s.run(t, "list"); status != 0 || !strings.Contains(out, "no function") {
		t.Errorf("%d %s", status, out)
	}
	for name, number := range map[string]float32{"one": 1, "ten": 10} {
		if status, out, errs := s.run(t, "deploy", "-f", s.adds(t, name, number, "")); status != 0 ||
			!strings.Contains(out, "version 1 is ready") {
			t.Fatalf("deploy %s: %d %s%s", name, status, out, errs)
		}
		if status, y, text := s.infer(name); status != 200 || y != 1+float64(number) {
			t.Fatalf("%s: %d %s", name, status, text)
		}
	}
	if all := s.list(t); len(all) != 2 || all[0].Name != "one" || all[0].State != functions.Ready ||
		all[0].Version != 1 || all[1].Labels["adds"] != "10" || all[1].LatencyMS != 1000 {
		t.Errorf("%+v", all)
	}
	if status, out, errs := s.run(t, "list"); status != 0 || !strings.Contains(out, "p99 1s") {
		t.Errorf("list: %d %s%s", status, out, errs)
	}

	// Replaced under load.
	var load sync.WaitGroup
	var stop atomic.Bool
	var asked, fresh atomic.Int64
	for range 4 {
		load.Go(func() {
			for !stop.Load() {
				asked.Add(1)
				switch status, y, text := s.infer("one"); {
				case status != 200 || y != 2 && y != 3:
					t.Errorf("while the function is replaced: %d %s", status, text)
				case y == 3:
					fresh.Add(1)
				}
			}
		})
	}
	if status, out, errs := s.run(t, "deploy", "-f", s.adds(t, "one", 2, "max_instances: 3\n")); status != 0 ||
		!strings.Contains(out, "version 2 is ready") {
		t.Errorf("update: %d %s%s", status, out, errs)
	}
	until(t, func() bool { return fresh.Load() > 20 })
	stop.Store(true)
	load.Wait()
	t.Logf("%d queries during the update, %d answered by the new version", asked.Load(), fresh.Load())

	// What cannot be deployed changes nothing.
	other := filepath.Join(s.dir, "other.onnx")
	if err := onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic, 3).Write(other); err != nil {
		t.Fatal(err)
	}
	write(t, s.dir, "junk.onnx", "junk")
	for text, want := range map[string]string{
		"name: one\nmodel: other.onnx\nslo: {latency: 1s}\n":    "other tensors",
		"name: two\nmodel: junk.onnx\nslo: {latency: 1s}\n":     "model",
		"name: two\nmodel: other.onnx\nslo: {latency: 100ns}\n": "no plan",
	} {
		if status, out, errs := s.run(t, "deploy", "-f", write(t, s.dir, "bad.yaml", "%s", text)); status !=
			cli.ExitFailed || !strings.Contains(errs, want) {
			t.Errorf("%q: %d %s%s, want a refusal with %q", text, status, out, errs, want)
		}
	}
	if status, _, errs := s.run(t, "deploy", "-f", write(t, s.dir, "bad.yaml", "name: two\nmodell: x\n")); status !=
		cli.ExitConfig || !strings.Contains(errs, "bad.yaml:2: modell: unknown key") {
		t.Errorf("%d %s", status, errs)
	}

	status, out, errs := s.run(t, "logs", "one")
	for _, want := range []string{"deploy", "version 2", "launch", "ready", "one-v2", "unload"} {
		if !strings.Contains(out, want) {
			t.Errorf("logs: %d %s%s\nwant %q in it", status, out, errs, want)
		}
	}
	if status, out, _ := s.run(t, "logs", "one", "--json", "-n", "1"); status != 0 || strings.Count(out, "\n") != 1 ||
		!json.Valid([]byte(out)) {
		t.Errorf("logs --json: %d %s", status, out)
	}

	// Requests without the token change nothing, and the token is only in its file.
	token, err := os.ReadFile(filepath.Join(s.dir, "data", "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(s.dir, "data", "admin.token")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v %v", st.Mode(), err)
	}
	for _, x := range []struct{ method, path, authorization string }{
		{"GET", functions.PathFunctions, ""}, {"DELETE", functions.PathFunctions + "one", "Bearer wrong"}, {
			"PUT", functions.PathFunctions + "one", "Basic " + strings.TrimSpace(string(token)),
		}, {"PUT", "/prices", ""},
	} {
		if status := s.ask(t, x.method, x.path, x.authorization); status != http.StatusUnauthorized {
			t.Errorf("%s %s with %q: %d, want 401", x.method, x.path, x.authorization, status)
		}
	}
	for _, path := range []string{"/metrics", "/debug/decisions", "/prices"} {
		if status := s.ask(t, "GET", path, ""); status != 200 {
			t.Errorf("GET %s: %d", path, status)
		}
	}

	if status, out, errs := s.run(t, "delete", "ten"); status != 0 || !strings.Contains(out, "deleted") {
		t.Errorf("delete: %d %s%s", status, out, errs)
	}
	if status, _, _ := s.infer("ten"); status != 404 {
		t.Errorf("a deleted function answers %d", status)
	}
	if status, _, errs := s.run(t, "delete", "ten"); status != cli.ExitFailed ||
		!strings.Contains(errs, "no function") {
		t.Errorf("deleted twice: %d %s", status, errs)
	}

	_ = c.Process.Kill()
	_ = c.Wait()
	if status, _, _ := s.run(t, "list"); status != cli.ExitNoServer {
		t.Errorf("list without a server: %d", status)
	}
	s.start(t)
	if all := s.list(t); len(all) != 1 || all[0].Name != "one" || all[0].Version != 2 || all[0].MaxInstances != 3 {
		t.Errorf("after the kill: %+v", all)
	}
	if status, y, text := s.infer("one"); status != 200 || y != 3 {
		t.Errorf("after the kill: %d %s", status, text)
	}
	if status, out, errs := s.run(t, "deploy", "-f", s.adds(t, "ten", 11, "")); status != 0 ||
		!strings.Contains(out, "version 2 is ready") {
		t.Errorf("a deleted name deployed again: %d %s%s", status, out, errs)
	}
}

// A run in which functions come, change and go leaves a journal that replays to the same decisions.
func TestFunctionsReplay(t *testing.T) {
	s := newServerless(t)
	journal := filepath.Join(s.dir, "run.journal")
	c := sluice(t, "serve", "-f", s.file, "--journal", journal)
	listening(t, s.admin)
	for _, x := range [][]string{
		{"deploy", "-f", s.adds(t, "one", 1, "")}, {"deploy", "-f", s.adds(t, "two", 2, "min_instances: 2\n")},
		{"deploy", "-f", s.adds(t, "one", 3, "")}, {"delete", "one"},
	} {
		if status, out, errs := s.run(t, x...); status != 0 {
			t.Fatalf("%v: %d %s%s", x, status, out, errs)
		}
		for range 5 {
			s.infer("one")
			s.infer("two")
		}
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(journal)
	if err != nil || strings.Count(string(text), `"k":"spec-grown"`) != 4 {
		t.Errorf("%v: %d growths in the journal, want 4", err, strings.Count(string(text), `"k":"spec-grown"`))
	}
	if status, out, errs := run(t.Context(), "replay", journal); status != 0 {
		t.Errorf("replay: %d %s%s", status, out, errs)
	}
}

// ask sends an empty request to the admin port.
func (s *serverless) ask(t *testing.T, method, path, authorization string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.admin+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	_, _ = io.Copy(io.Discard, w.Body)
	return w.StatusCode
}

// A server that is killed with SIGKILL at random instants while functions are deployed, replaced and deleted: after
// every start each acknowledged deployment is there and answers with its own model, no deleted function is back, and
// what was under way is there in whole or not at all. SLUICE_SEED chooses the instants, SLUICE_KILLS how many.
func TestKilledWhileDeploying(t *testing.T) {
	t.Parallel()
	s := newServerless(t)
	seed, kills := uint64(time.Now().UnixNano()), 6
	for name, to := range map[string]func(uint64){"SLUICE_SEED": func(n uint64) {
		seed = n
	}, "SLUICE_KILLS": func(n uint64) { kills = int(n) }} {
		if v := os.Getenv(name); v != "" {
			n, err := strconv.ParseUint(v, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			to(n)
		}
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	type known struct {
		number  float32 // acknowledged; 0 for none, or deleted
		pending float32 // under way when the server was killed: 0 for none, -1 for a deletion
	}
	all := map[string]*known{"a": {}, "b": {}, "c": {}}
	names := []string{"a", "b", "c"}
	number := float32(0)
	deployed, deleted := 0, 0
	for k := range kills {
		c := s.start(t)
		there := s.list(t)
		for name, x := range all {
			at := slices.IndexFunc(there, func(f functions.Status) bool { return f.Name == name })
			if at < 0 {
				if x.number != 0 && x.pending != -1 {
					t.Fatalf("seed %d, kill %d: function %s, which was acknowledged, is gone", seed, k, name)
				}
				x.number, x.pending = 0, 0
				continue
			}
			is, err := strconv.ParseFloat(there[at].Labels["adds"], 32)
			if err != nil || float32(is) != x.number && float32(is) != x.pending {
				t.Fatalf("seed %d, kill %d: function %s adds %v, acknowledged was %v and %v was under way", seed, k,
					name, is, x.number, x.pending)
			}
			x.number, x.pending = float32(is), 0
			status, y, text := s.infer(name)
			if status != 200 || float32(y) != 1+x.number {
				t.Fatalf("seed %d, kill %d: function %s is to add %v: %d %s", seed, k, name, x.number, status, text)
			}
		}
		dead := make(chan struct{})
		go func() {
			time.Sleep(time.Duration(rng.Int64N(int64(1500 * time.Millisecond))))
			_ = c.Process.Kill()
			_ = c.Wait()
			close(dead)
		}()
		for alive := true; alive; {
			name := names[next(&number)%3]
			x := all[name]
			if x.number != 0 && int(number)%5 == 0 {
				x.pending = -1
				status, _, errs := s.run(t, "delete", name)
				if alive = status == 0; alive {
					x.number, x.pending, deleted = 0, 0, deleted+1
				} else if status != cli.ExitNoServer {
					t.Fatalf("delete: %d %s", status, errs)
				}
				continue
			}
			x.pending = number
			status, _, errs := s.run(t, "deploy", "-f", s.adds(t, name, number, ""), "--wait", "0s")
			if alive = status == 0; alive {
				x.number, x.pending, deployed = number, 0, deployed+1
			} else if status != cli.ExitNoServer {
				t.Fatalf("deploy: %d %s", status, errs)
			}
		}
		<-dead
	}
	t.Logf("%d deployments and %d deletions acknowledged over %d kills", deployed, deleted, kills)
	if files, err := os.ReadDir(filepath.Join(s.dir, "data", "models")); err != nil || len(files) == 0 && deployed > 0 {
		t.Errorf("%v %v", files, err)
	}
	s.start(t)
	there := s.list(t)
	files, _ := os.ReadDir(filepath.Join(s.dir, "data", "models"))
	if len(files) > len(there) {
		t.Errorf("%d model files for %d functions after a start: what was cut short was not removed", len(files),
			len(there))
	}
}

// next counts up.
func next(n *float32) int { *n++; return int(*n) }

// The token is not in the log of a server that says everything.
func TestTheTokenIsNotLogged(t *testing.T) {
	s := newServerless(t)
	b, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file, append(b, "telemetry: {log_level: debug}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	c := s.start(t)
	if status, out, errs := s.run(t, "deploy", "-f", s.adds(t, "one", 1, "")); status != 0 {
		t.Fatalf("%d %s%s", status, out, errs)
	}
	token, err := os.ReadFile(filepath.Join(s.dir, "data", "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	said := c.Stderr.(*lockedBuffer).String()
	if said == "" || bytes.Contains([]byte(said), bytes.TrimSpace(token)) {
		t.Errorf("the log is empty, or the token is in it:\n%s", said)
	}
}

// A function is deployed with latencies predicted from its operators, serves, and is measured when nothing is served.
// What its operators take lies in the store, also after the server was killed: the same model under another name asks
// for none to be measured.
func TestFunctionPredicted(t *testing.T) {
	t.Parallel()
	s := newServerless(t)
	c := s.start(t)
	if status, out, errs := s.run(t, "deploy", "-f", s.adds(t, "one", 1, "profile: predict\n")); status != 0 {
		t.Fatalf("%d %s%s", status, out, errs)
	}
	if status, y, text := s.infer("one"); status != 200 || y != 2 {
		t.Errorf("%d %s", status, text)
	}
	until(t, func() bool {
		all := s.list(t)
		return all[0].Profile == functions.ByMeasuring && all[0].PredictionError != nil
	})
	if status, out, errs := s.run(t, "list"); status != 0 || !strings.Contains(out, "measured (predicted ") {
		t.Errorf("%d %s%s", status, out, errs)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	operators := func() (n int) {
		kept, err := store.OpenFunctions(filepath.Join(s.dir, "data"))
		if err != nil {
			t.Fatal(err)
		}
		defer kept.Close()
		if err := kept.Each(store.OperatorTable, func(string, []byte) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := operators()
	c = s.start(t)
	if status, out, errs := s.run(t, "deploy", "-f", s.adds(t, "same", 1, "profile: predict\n")); status != 0 {
		t.Fatalf("%d %s%s", status, out, errs)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if n := operators(); before == 0 || n != before {
		t.Errorf("%d operators are known after the first deployment, %d after the same again", before, n)
	}
}
