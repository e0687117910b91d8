package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/tensor"
)

// A soak, for as long as SLUICE_SOAK says: a server in front of two model servers of which one at a time hangs, fails,
// flaps, is slow or gives wrong answers, and one whose models are replaced, loaded and unloaded meanwhile. Queries come
// over HTTP, in JSON and in bytes, and over gRPC; some clients go away, some queries are too large for the memory that
// requests may hold, and the file of keys changes. Every query of a client that waits gets an answer. Memory,
// goroutines and descriptors are as flat in the end as in the first quarter.
func TestSoak(t *testing.T) {
	needsONNX(t)
	lasts := 3 * time.Second
	if long := os.Getenv("SLUICE_SOAK"); long != "" {
		var err error
		if lasts, err = time.ParseDuration(long); err != nil {
			t.Fatal(err)
		}
	}
	soak := newSoak(t, lasts)
	var all sync.WaitGroup
	for k := range 6 {
		all.Go(func() { soak.client(uint64(k)) })
	}
	all.Go(soak.faults)
	all.Go(soak.reloads)
	all.Go(soak.keys)
	var first, last [2][3]float64
	for k := range 21 {
		time.Sleep(time.Until(soak.end.Add(-lasts * time.Duration(20-k) / 20)))
		for x, s := range soak.servers {
			last[x] = usedBy(t, s)
			t.Logf("%6.0f s, %s: %.1f MiB resident, %.0f goroutines, %.0f descriptors",
				(lasts * time.Duration(k) / 20).Seconds(), soakServers[x], last[x][0]/(1<<20), last[x][1], last[x][2])
			for what := range first[x] {
				if k <= 5 {
					first[x][what] = max(first[x][what], last[x][what])
				}
			}
		}
	}
	all.Wait()
	http.DefaultClient.CloseIdleConnections()
	soak.mu.Lock()
	defer soak.mu.Unlock()
	t.Logf("%v; %d reloads of models, %d of keys", soak.count, soak.reloaded, soak.keyFiles)
	for x := range last {
		for k, what := range []string{"bytes of memory", "goroutines", "descriptors"} {
			slack := []float64{32 << 20, 20, 20}[k]
			if lasts >= time.Minute && last[x][k] > first[x][k]*1.3+slack {
				t.Errorf("%s: %.0f %s in the end, at most %.0f in the first quarter", soakServers[x], last[x][k], what,
					first[x][k])
			}
		}
	}
	if soak.count["lost"] > 0 || soak.count["served"] == 0 || soak.reloaded == 0 {
		t.Errorf("%v, %d reloads: want an answer for every query, and some of each", soak.count, soak.reloaded)
	}
}

var soakServers = [...]string{"front", "models"}

// usedBy is what a server uses: bytes of memory, goroutines, descriptors.
func usedBy(t *testing.T, s *server) [3]float64 {
	t.Helper()
	code, page := bodyOf(t, "http://"+s.admin+"/metrics")
	if code != http.StatusOK {
		t.Fatalf("metrics: %d", code)
	}
	return [3]float64{gauge(t, page, "process_resident_memory_bytes"), gauge(t, page, "go_goroutines"),
		gauge(t, page, "process_open_fds")}
}

// soak is two servers, what stands behind them, and what came of the queries.
type soak struct {
	t       *testing.T
	end     time.Time
	backs   [2]*modelServer
	dir     string
	models  string // the repository
	key     string
	line    string // of the key in its file
	servers [2]*server
	targets [2][2]loadgen.Target // HTTP and gRPC

	mu                 sync.Mutex
	count              map[string]int // of queries by what came of them
	reloaded, keyFiles int
}

func newSoak(t *testing.T, lasts time.Duration) *soak {
	x := &soak{t: t, backs: [2]*modelServer{{}, {}}, dir: t.TempDir(), count: make(map[string]int)}
	x.key, x.line = keyOf(t, "till")
	write(t, x.dir, "keys", "%s", x.line)
	const serving = `
server:
  {not_ready: 0s, http: "127.0.0.1:0", grpc: "127.0.0.1:0", admin: "127.0.0.1:0",
   limits: {request: 1MiB, memory: 2MiB}}
`
	point := func(batch int) string {
		return fmt.Sprintf(`{"variant": "m", "device_type": "any", "batch": %d, "concurrency": 1, "samples": 100,
 "mean_us": 2000, "stddev_us": 500, "p50_us": 2000, "p90_us": 3000, "p95_us": 3500, "p99_us": 4000}`, batch)
	}
	write(t, x.dir, "profile.json", `{"version": 1, "created": "2026-01-01T00:00:00Z", "points": [%s,%s], "loads": []}`,
		point(1), point(8))
	x.servers[0] = serve(t, "-f", write(t, x.dir, "front.yaml", `
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
access: {keys: keys, anonymous: [look], audit: audit}
`+serving, startModelServer(t, x.backs[0]), startModelServer(t, x.backs[1])))
	x.models = filepath.Join(x.dir, "models")
	adding(t, x.models, "stays", 1, 1)
	adding(t, x.models, "moves", 1, 1)
	x.servers[1] = serve(t, "--clients-control-models", "-f", write(t, x.dir, "models.yaml", `
version: 1
device_types: [{name: local, cores: 2}]
workers: [{name: here}]
models: {repository: models, control: explicit}
`+serving))
	for k, s := range x.servers {
		untilStatus(t, s.url()+"/v2/health/ready", http.StatusOK)
		for over, address := range []string{s.url(), "grpc://" + s.grpc} {
			target, err := loadgen.Dial(address, 16)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = target.Close() })
			x.targets[k][over] = target
		}
	}
	controls(t, x.servers[1].url(), "stays", "load", "{}")
	x.end = time.Now().Add(lasts)
	return x
}

// client sends queries of all kinds until the end.
func (x *soak) client(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var all sync.WaitGroup
	defer all.Wait()
	for time.Now().Before(x.end) {
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(80*time.Millisecond)))
		model, columns, to := "app", 4, rng.IntN(2)
		if to == 1 {
			model, columns = []string{"stays", "moves"}[rng.IntN(2)], 2
		}
		switch rng.IntN(20) {
		case 0: // a client that goes away
			x.infer(to, rng.IntN(2), model, 1, columns, time.Duration(1+rng.IntN(4))*time.Millisecond)
		case 1: // together they need more memory than requests may hold
			for range 4 {
				all.Go(func() { x.post(to, model, columns, strings.Repeat(" ", 700<<10)) })
			}
		case 2, 3, 4, 5:
			x.post(to, model, columns, "")
		default:
			x.infer(to, rng.IntN(2), model, 1+rng.IntN(4), columns, time.Minute)
		}
	}
}

// soakClient has a connection for each request: one that a server closes for idleness just when a request is sent is no
// lost query.
var soakClient = &http.Client{Timeout: time.Minute, Transport: &http.Transport{
	DisableKeepAlives: true, ExpectContinueTimeout: time.Minute,
}}

// post sends a query in JSON.
func (x *soak) post(to int, model string, columns int, before string) {
	row, err := json.Marshal(make([]float32, columns))
	if err != nil {
		x.t.Error(err)
	}
	r, err := http.NewRequest(http.MethodPost, x.servers[to].url()+"/v2/models/"+model+"/infer", strings.NewReader(
		fmt.Sprintf(`%s{"inputs":[{"name":"x","datatype":"FP32","shape":[1,%d],"data":%s}]}`, before, columns, row)))
	if err != nil {
		x.t.Error(err)
		return
	}
	r.Header.Set("Authorization", "Bearer "+x.key)
	r.Header.Set("Expect", "100-continue") // a refusal that comes before the body is sent is read
	resp, err := soakClient.Do(r)
	if err != nil {
		x.note("lost", model, err)
		return
	}
	said, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	switch code := resp.StatusCode; {
	case err != nil:
		x.note("lost", model, err)
	case code == http.StatusOK:
		x.note("served", "", nil)
	case code == http.StatusServiceUnavailable && bytes.Contains(said, []byte("memory")):
		x.note("no memory", "", nil)
	default:
		x.note(fmt.Sprint(code), "", nil)
	}
}

// infer sends a query in bytes, over HTTP or gRPC. A client that does not wait for a minute goes away.
func (x *soak) infer(to, over int, model string, rows, columns int, wait time.Duration) {
	inputs := []tensor.Spec{{Name: "x", DType: tensor.FP32, Shape: []int64{int64(rows), int64(columns)}}}
	in, err := loadgen.Synthetic(inputs, 1, 1)
	if err != nil {
		x.t.Error(err)
		return
	}
	ctx, done := context.WithTimeout(loadgen.WithToken(context.Background(), x.key), wait)
	defer done()
	_, err = x.targets[to][over].Infer(ctx, &loadgen.Request{Model: model, Inputs: in.Tensors(0, 1)})
	var said *loadgen.Error
	switch {
	case err == nil:
		x.note("served", "", nil)
	case ctx.Err() != nil && wait < time.Minute:
		x.note("gone", "", nil)
	case ctx.Err() != nil || !errors.As(err, &said):
		x.note("lost", model, err)
	default:
		x.note(said.Outcome.String(), "", nil)
	}
}

// note counts what came of a query.
func (x *soak) note(what, model string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.count[what]++; err != nil {
		x.t.Errorf("a query of %s was not answered: %v", model, err)
	}
}

// faults has one fault of a model server after another, with a time without any between.
func (x *soak) faults() {
	rng := rand.New(rand.NewPCG(9, 9))
	for time.Now().Before(x.end) {
		s := x.backs[rng.IntN(2)]
		switch rng.IntN(5) {
		case 0:
			s.hang()
		case 1:
			s.fails.Store(true)
		case 2:
			s.flaps.Store(true)
		case 3:
			s.wrong.Store(true)
		case 4:
			s.delay.Store(int64(200 * time.Millisecond))
		}
		time.Sleep(min(time.Duration(1+rng.IntN(8))*time.Second, time.Until(x.end)))
		if s.hangs.Load() != nil {
			s.release()
		}
		s.fails.Store(false)
		s.flaps.Store(false)
		s.wrong.Store(false)
		s.delay.Store(0)
		time.Sleep(min(time.Duration(rng.IntN(4))*time.Second, max(time.Until(x.end), 0)))
	}
}

// reloads replaces a model, and unloads it in between.
func (x *soak) reloads() {
	rng := rand.New(rand.NewPCG(9, 10))
	for time.Now().Before(x.end) {
		verb := "load"
		if rng.IntN(3) == 0 {
			verb = "unload"
		} else {
			adding(x.t, x.models, "moves", 1, float32(rng.IntN(100)))
		}
		url := x.servers[1].url() + "/v2/repository/models/moves/" + verb
		resp, err := soakClient.Post(url, "application/json", strings.NewReader("{}"))
		if err != nil || resp.StatusCode != http.StatusOK {
			x.t.Errorf("%s: %v, %v", verb, resp, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		x.mu.Lock()
		x.reloaded++
		x.mu.Unlock()
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(time.Second)))
	}
}

// keys replaces the file of keys, in which that of the clients always is.
func (x *soak) keys() {
	_, other := keyOf(x.t, "other")
	for time.Now().Before(x.end) {
		x.mu.Lock()
		x.keyFiles++
		text := x.line
		if x.keyFiles%2 == 0 {
			text += other
		}
		x.mu.Unlock()
		write(x.t, x.dir, "keys.new", "%s", text)
		if err := os.Rename(filepath.Join(x.dir, "keys.new"), filepath.Join(x.dir, "keys")); err != nil {
			x.t.Error(err)
		}
		time.Sleep(1100 * time.Millisecond)
	}
}

// gauge returns a number of a page of metrics.
func gauge(t *testing.T, page, name string) float64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("there is no metric %s", name)
	}
	v, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
