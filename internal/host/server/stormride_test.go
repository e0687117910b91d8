package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

const stormWorld = `
version: 1
store: data
device_types: [{name: local, cores: 2}]
workers: [{name: here, device_type: local}, {name: there, device_type: local}]
models: {repository: models, control: explicit}
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "off"}
system: {name: %s}
`

// Times of a storm.
const (
	stormTimeout = 2 * time.Second // of a query
	// stormBound is how much later than its timeout a query may be answered: what a run that hangs is waited for, and
	// an instance that starts with the first query (cold_wait).
	stormBound = 5*time.Second + 30*time.Second
	stormWait  = time.Minute      // for a change
	stormCalm  = 15 * time.Minute // until all is well after the last fault
)

// stormCounts is what came of storms.
type stormCounts struct{ Queries, Served, Changes, Starts int }

func (c *stormCounts) add(x stormCounts) {
	c.Queries, c.Served = c.Queries+x.Queries, c.Served+x.Served
	c.Changes, c.Starts = c.Changes+x.Changes, c.Starts+x.Starts
}

// storm is a run of a script. These must hold:
//   - each query gets an answer or an error within its time and a bound, and an answer is that of a model that its name
//     had while the query ran;
//   - once faults are over, a function whose deployment was acknowledged answers, also after a restart and a kill, and
//     so does a model that was loaded since the start; what was deleted or unloaded does not;
//   - a server and a model that say that they are ready then answer a query;
//   - the engine is whole, nothing panics that was not made to, and no goroutine is left at the end.
type storm struct {
	script  *stormScript
	dir     string
	starts  int
	sums    []string // of files for functions, by the number that they add
	weather *stormWeather
	log     kept
	life    *stormLife
	names   map[string]*stormName
	asked   sync.WaitGroup // queries
	changes sync.WaitGroup

	mu     sync.Mutex
	counts stormCounts
	failed []string
}

// stormLife is a server from its start to its end.
type stormLife struct {
	s     *Server
	stop  context.CancelFunc
	done  chan error
	calls context.Context // of changes: they end when the server does
	leave context.CancelFunc
	token string
	dead  bool // it was killed: what it says since does not count
}

// stormName is what is known of a model or function.
type stormName struct {
	turn    chan struct{} // one change at a time
	file    int           // the number of its file in the repository, or junk
	numbers []int         // that its model added, by change; gone where there was none
	sure    int           // the latest of them that was acknowledged
	deleted int           // the latest of them that was acknowledged as gone
}

// ride runs a script in a folder and returns how it failed, "" for not at all.
func ride(dir string, script *stormScript) (stormCounts, string) {
	w := &storm{script: script, dir: dir, names: make(map[string]*stormName),
		weather: &stormWeather{
			fault: make(map[serving.WorkerID]stormFault), until: make(map[serving.WorkerID]time.Time),
		}}
	for k := range stormNames {
		for _, kind := range []string{"m", "f"} {
			x := &stormName{turn: make(chan struct{}, 1), numbers: []int{gone}}
			w.names[fmt.Sprint(kind, k)] = x
		}
		must(addModel(filepath.Join(dir, "models", fmt.Sprint("m", k), "1", "model.onnx"), 0))
	}
	must(os.WriteFile(filepath.Join(dir, "sluice.yaml"), fmt.Appendf(nil, stormWorld, script.system), 0o600))
	if !w.start() {
		return w.counts, strings.Join(w.failed, "\n")
	}
	begun := time.Now()
	for _, e := range script.events {
		time.Sleep(time.Until(begun.Add(e.at)))
		if w.do(e); len(w.failed) > 0 {
			break
		}
	}
	w.changes.Wait()
	w.asked.Wait()
	if !w.life.isOver() { // it did not start again
		w.calm()
		w.stop()
	}
	w.check()
	return w.counts, strings.Join(w.failed, "\n")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (w *storm) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing(format, args...)
}

// failing is fail where mu is held.
func (w *storm) failing(format string, args ...any) {
	if len(w.failed) < 5 {
		w.failed = append(w.failed, fmt.Sprintf(format, args...))
	}
}

// start begins a life. It returns false where the system cannot be used so.
func (w *storm) start() bool {
	o, err := host.Open(filepath.Join(w.dir, "sluice.yaml"), host.Options{})
	must(err)
	p, err := o.Begin(context.Background())
	var s *Server
	if err == nil {
		s, err = New(context.Background(), p, Options{
			HTTP: "off", ModelControl: true, Log: slog.New(slog.NewTextHandler(&w.log, nil)), over: w.weather.over,
		})
	}
	switch {
	case w.counts.Starts == 0 && (fault.Of(err) == fault.Config || fault.Of(err) == fault.Missing):
		return false
	case err != nil:
		w.fail("it does not start: %v", err)
		return false
	case s.planned.PlannerInUse().Provides()&(plan.Tables|plan.Values) != 0:
		must(s.Close())
		return false
	}
	token, err := os.ReadFile(filepath.Join(w.dir, "data", "admin.token"))
	must(err)
	l := &stormLife{s: s, done: make(chan error, 1), token: strings.TrimSpace(string(token))}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(context.Background())
	l.calls, l.leave = context.WithCancel(context.Background())
	go func() { l.done <- s.Serve(ctx) }()
	w.life = l
	w.counts.Starts++
	if w.sums == nil {
		for k := range 32 {
			w.upload(k)
		}
	}
	return true
}

// upload sends a model for functions, that adds a number.
func (w *storm) upload(number int) {
	path := filepath.Join(w.dir, "sent.onnx")
	must(addModel(path, float32(number)))
	b, err := os.ReadFile(path)
	must(err)
	sum := sha256.Sum256(b)
	w.sums = append(w.sums, hex.EncodeToString(sum[:]))
	if code, text := w.call(context.Background(), w.life, "PUT", functions.PathModels+w.sums[number], b); code != 200 {
		w.fail("a model is not taken: %d %s", code, text)
	}
}

// stop ends a life as a signal does. Changes end, since clients that wait for one would keep the server.
func (w *storm) stop() {
	l := w.life
	l.leave()
	w.changes.Wait()
	l.stop()
	if err := <-l.done; err != nil {
		w.fail("the server ended with: %v", err)
	}
	w.asked.Wait()
	// A model of the repository is served when a client says so, in each life anew.
	for name, x := range w.names {
		if name[0] == 'm' {
			x.numbers, x.sure = append(x.numbers, gone), len(x.numbers)
		}
	}
}

// kill ends a life at once: the next one has what is on the disk now.
func (w *storm) kill() {
	synctest.Wait()
	w.life.dead = true
	w.starts++
	next := filepath.Join(filepath.Dir(w.dir), fmt.Sprint(w.starts))
	must(os.CopyFS(next, os.DirFS(w.dir)))
	must(os.Chmod(filepath.Join(next, "data", "admin.token"), 0o600)) // which CopyFS does not keep
	w.stop()
	w.dir = next
}

// call hands a request to the server, of its admin address where the path is one of functions.
func (w *storm) call(ctx context.Context, l *stormLife, method, path string, body []byte) (int, string) {
	h := l.s.Handler()
	if strings.HasPrefix(path, "/v1/") {
		h = l.s.AdminHandler()
	}
	r := httptest.NewRequestWithContext(ctx, method, "http://localhost"+path, bytes.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+l.token)
	if strings.HasPrefix(path, functions.PathFunctions) {
		r.Header.Set("Content-Type", "application/json")
	}
	to := httptest.NewRecorder()
	h.ServeHTTP(to, r)
	return to.Code, to.Body.String()
}

// do has an event happen.
func (w *storm) do(e stormEvent) {
	model, function := fmt.Sprint("m", e.who), fmt.Sprint("f", e.who)
	load := "/v2/repository/models/" + model + "/load"
	file := filepath.Join(w.dir, "models", model, "1", "model.onnx")
	switch e.deed {
	case queriesCome:
		for k := range e.n {
			w.asked.Go(func() { w.ask(e, k) })
		}
	case modelLoads:
		w.change(model, same, "POST", load, nil, nil)
	case modelReplaced:
		w.change(model, e.n, "POST", load, nil, func() error { return addModel(file, float32(e.n)) })
	case modelBroken:
		w.change(model, junk, "POST", load, nil, func() error { return os.WriteFile(file, []byte("junk"), 0o600) })
	case modelUnloads:
		w.change(model, gone, "POST", "/v2/repository/models/"+model+"/unload", nil, nil)
	case functionDeployed:
		b, err := json.Marshal(functions.Deployment{Model: w.sums[e.n], LatencyMS: 1000, Percentile: 99, MaxBatch: 4})
		must(err)
		w.change(function, e.n, "PUT", functions.PathFunctions+function, b, nil)
	case functionDeleted:
		w.change(function, gone, "DELETE", functions.PathFunctions+function, nil, nil)
	case workerFails:
		w.weather.set(serving.WorkerID(e.who), stormFault(e.n), e.long)
	case serverStops:
		w.stop()
		w.start()
	case serverKilled:
		w.kill()
		w.start()
	}
}

// check is what must hold at the end.
func (w *storm) check() {
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, "panic") && !strings.Contains(line, "on purpose") {
			w.fail("%.3000s", line)
		}
	}
	synctest.Wait()
	if left := stormGoroutines(); left != "" {
		w.fail("left are:\n%s", left)
	}
}

// stormGoroutines are the stacks of the goroutines of this bubble but the caller's.
func stormGoroutines() string {
	b := make([]byte, 1<<20)
	all := strings.Split(string(b[:runtime.Stack(b, true)]), "\n\n")
	_, bubble, found := strings.Cut(strings.SplitN(all[0], "\n", 2)[0], "synctest bubble ")
	if !found {
		return ""
	}
	var left []string
	for _, x := range all[1:] {
		head := strings.SplitN(x, "\n", 2)[0]
		if strings.Contains(head, "synctest bubble "+bubble) && !strings.Contains(x, "testing/synctest.Test") {
			left = append(left, x)
		}
	}
	return strings.Join(left, "\n\n")
}
