package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/memnet"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

const stormWorld = `
version: 1
store: data
device_types: [{name: local, cores: 2}]
workers: [{name: here, device_type: local}, {name: there, device_type: local}]
models: {repository: models, control: explicit}
server: {not_ready: 0s, http: "127.0.0.1:8000", grpc: "127.0.0.1:8001", admin: "127.0.0.1:8002"}
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
//   - whatever is looked at meanwhile is shown, or refused with a reason;
//   - the engine is whole, nothing panics that was not made to, and no goroutine is left at the end;
//   - the answers to a sequence are those of a state that nothing else has changed, or none;
//   - a journal replays, up to where a kill or a full disk has cut it off.
type storm struct {
	script  *stormScript
	begun   time.Time
	net     *memnet.Network
	disk    stormDisk
	dir     string
	starts  int
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
	ip    string
	http  *http.Client
	grpc  *grpc.ClientConn
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

// ride runs a script in a folder.
func ride(dir string, script *stormScript) *storm {
	w := &storm{script: script, dir: dir, begun: time.Now(), net: memnet.New(), names: make(map[string]*stormName),
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
	w.addOthers(filepath.Join(dir, "models"))
	world := fmt.Sprintf(stormWorld, script.system)
	if script.journal {
		world += "telemetry: {journal: journal}\n"
	}
	must(os.WriteFile(filepath.Join(dir, "sluice.yaml"), []byte(world), 0o600))
	defer w.disk.empty()
	if !w.start() {
		return w
	}
	for _, e := range script.events {
		time.Sleep(time.Until(w.begun.Add(e.at)))
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
	return w
}

// again starts the server on what a ride has left, where the clock begins anew.
func (w *storm) again() {
	w.asked, w.changes, w.net = sync.WaitGroup{}, sync.WaitGroup{}, memnet.New()
	if w.start() {
		w.calm()
		w.stop()
	}
	w.check()
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

// sumNumber is what the model with a state adds for each query of a sequence.
const sumNumber = 7

// addOthers writes an ensemble, of a model that it runs twice, and a model that adds up the queries of a sequence.
func (w *storm) addOthers(models string) {
	must(addModel(filepath.Join(models, "p0", "1", "model.onnx"), 0))
	must(os.MkdirAll(filepath.Join(models, "e0", "1"), 0o755))
	const tensors = `max_batch_size: 4
input [{name: "x" data_type: TYPE_FP32 dims: [2]}] output [{name: "y" data_type: TYPE_FP32 dims: [2]}]
`
	must(os.WriteFile(filepath.Join(models, "e0", "config.pbtxt"), []byte(`platform: "ensemble" `+tensors+`
ensemble_scheduling {step [
  {model_name: "p0" model_version: -1 input_map {key: "x" value: "x"} output_map {key: "y" value: "h"}},
  {model_name: "p0" model_version: -1 input_map {key: "x" value: "h"} output_map {key: "y" value: "y"}}]}
`), 0o600))
	must(os.MkdirAll(filepath.Join(models, "s0", "1"), 0o755))
	must(os.WriteFile(filepath.Join(models, "s0", "config.pbtxt"), []byte(tensors+`sequence_batching {
  max_sequence_idle_microseconds: 60000000
  state {input_name: "before" output_name: "after" data_type: TYPE_FP32 dims: 2 initial_state: {
    name: "none" data_type: TYPE_FP32 dims: 2 zero_data: true}}}
`), 0o600))
	must(onnxmodel.NewGraph("sum").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 2).
		Input("before", onnxmodel.Float32, onnxmodel.Symbolic, 2).
		Initializer("number", []float32{sumNumber}, 1).Node("Add", []string{"x", "number"}, []string{"now"}).
		Node("Add", []string{"now", "before"}, []string{"y"}).Node("Identity", []string{"y"}, []string{"after"}).
		Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 2).Output("after", onnxmodel.Float32, onnxmodel.Symbolic, 2).
		Write(filepath.Join(models, "s0", "1", "model.onnx")))
	for _, name := range []string{"e0", "s0"} {
		w.names[name] = &stormName{turn: make(chan struct{}, 1), numbers: []int{gone}}
	}
	w.names["s0"].file = sumNumber
}

// start begins a life. It returns false where the system cannot be used so.
func (w *storm) start() bool {
	l := &stormLife{ip: fmt.Sprintf("10.0.0.%d", w.counts.Starts+1), done: make(chan error, 1)}
	o, err := host.Open(filepath.Join(w.dir, "sluice.yaml"), host.Options{Net: w.net.Of(l.ip)})
	must(err)
	p, err := o.Begin(context.Background())
	var s *Server
	if err == nil {
		s, err = New(context.Background(), p, Options{
			ModelControl: true, Log: slog.New(slog.NewTextHandler(&w.log, nil)), over: w.weather.over,
		})
	}
	switch {
	case w.counts.Starts == 0 && (fault.Of(err) == fault.Config || fault.Of(err) == fault.Missing):
		return false
	case err != nil && w.disk.isFull():
		w.disk.empty()
		return w.start()
	case err != nil:
		w.fail("it does not start: %v", err)
		return false
	case s.planned.PlannerInUse().Provides()&(plan.Tables|plan.Values) != 0:
		must(s.Close())
		return false
	}
	token, err := os.ReadFile(filepath.Join(w.dir, "data", "admin.token"))
	must(err)
	l.s, l.token = s, strings.TrimSpace(string(token))
	w.connect(l)
	var ctx context.Context
	ctx, l.stop = context.WithCancel(context.Background())
	l.calls, l.leave = context.WithCancel(context.Background())
	go func() { l.done <- s.Serve(ctx) }()
	w.life = l
	w.counts.Starts++
	return true
}

// stop ends a life as a signal does. Changes end, since clients that wait for one would keep the server.
func (w *storm) stop() {
	l := w.life
	l.leave()
	w.changes.Wait()
	l.stop()
	if err := <-l.done; err != nil && !l.dead && !w.disk.wasFull {
		w.fail("the server ended with: %v", err)
	}
	w.asked.Wait()
	l.http.CloseIdleConnections()
	must(l.grpc.Close())
	// A model of the repository is served when a client says so, in each life anew.
	for name, x := range w.names {
		if name[0] != 'f' {
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
	w.disk.with(func() {
		must(os.CopyFS(next, os.DirFS(w.dir)))
		must(os.Chmod(filepath.Join(next, "data", "admin.token"), 0o600)) // which CopyFS does not keep
	})
	w.net.Kill(w.life.ip, false)
	w.stop()
	w.dir = next
}

// deployment is how a client has a function be what adds a number: it sends the model, then what is to become of it.
func (w *storm) deployment(name string, number int) []stormCall {
	var model []byte
	w.disk.with(func() {
		path := filepath.Join(w.dir, "sent.onnx")
		must(addModel(path, float32(number)))
		var err error
		model, err = os.ReadFile(path)
		must(err)
	})
	sum := sha256.Sum256(model)
	digest := hex.EncodeToString(sum[:])
	b, err := json.Marshal(functions.Deployment{Model: digest, LatencyMS: 1000, Percentile: 99, MaxBatch: 4})
	must(err)
	return []stormCall{{"PUT", functions.PathModels + digest, model}, {"PUT", functions.PathFunctions + name, b}}
}

// outside is where clients are.
const outside = "10.9.0.1"

// connect makes the clients of a life.
func (w *storm) connect(l *stormLife) {
	l.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			must(err)
			return w.net.Dial(ctx, outside, net.JoinHostPort(l.ip, port))
		},
	}}
	var err error
	l.grpc, err = grpc.NewClient("passthrough:///"+net.JoinHostPort(l.ip, "8001"), w.net.Of(outside).GRPC(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
}

// onAdmin has the beginnings of the paths of the admin address.
var onAdmin = regexp.MustCompile("^/(v1|api|debug|metrics|prices)")

// call sends a request and returns the answer's code, 0 for none, and text.
func (w *storm) call(ctx context.Context, l *stormLife, method, path string, body []byte) (int, string) {
	at := "http://localhost:8000"
	if onAdmin.MatchString(path) {
		at = "http://localhost:8002"
	}
	r, err := http.NewRequestWithContext(ctx, method, at+path, bytes.NewReader(body))
	must(err)
	r.Header.Set("Authorization", "Bearer "+l.token)
	if len(body) > 0 && body[0] == '{' {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := l.http.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

// do has an event happen.
func (w *storm) do(e stormEvent) {
	model, function, part, times := fmt.Sprint("m", e.who), fmt.Sprint("f", e.who), fmt.Sprint("m", e.who), 1
	switch e.who {
	case ensemble:
		model, part, times = "e0", "p0", 2
	case stateful:
		model, part = "s0", "s0"
	}
	repository := "/v2/repository/models/" + model
	load := stormCall{"POST", repository + "/load", nil}
	file := filepath.Join(w.dir, "models", part, "1", "model.onnx")
	switch e.deed {
	case queriesCome:
		for k := range e.n {
			w.asked.Go(func() { w.ask(e, k) })
		}
	case modelLoads:
		w.change(model, same, nil, load)
	case modelReplaced:
		w.change(model, times*e.n, func() { must(addModel(file, float32(e.n))) }, load)
	case modelBroken:
		w.change(model, junk, func() { must(os.WriteFile(file, []byte("junk"), 0o600)) }, load)
	case modelUnloads:
		w.change(model, gone, nil, stormCall{"POST", repository + "/unload", nil})
	case functionDeployed:
		w.change(function, e.n, nil, w.deployment(function, e.n)...)
	case functionDeleted:
		w.change(function, gone, nil, stormCall{"DELETE", functions.PathFunctions + function, nil})
	case workerFails:
		w.weather.set(serving.WorkerID(e.who), stormFault(e.n), e.long)
	case serverStops:
		w.stop()
		w.restart(e)
	case serverKilled:
		w.kill()
		w.restart(e)
	case sequenceComes:
		w.asked.Go(func() { w.askSequence(e) })
	case peopleLook:
		for k := range e.n {
			w.asked.Go(func() { w.look(e, k) })
		}
	case diskFills:
		w.disk.fill(uint64(1<<(10+e.n%12)), e.long)
	case connectionsEnd:
		w.net.Drop(outside)
	}
}

// restart begins the next life, for some events a year later.
func (w *storm) restart(e stormEvent) {
	jump := [...]time.Duration{0, 0, time.Hour, 400 * 24 * time.Hour}[e.n%4]
	time.Sleep(jump)
	w.begun = w.begun.Add(jump)
	w.start()
}

// check is what must hold at the end.
func (w *storm) check() {
	w.replay()
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

// replay looks whether what was written down of the lives gives the same decisions.
func (w *storm) replay() {
	list, err := filepath.Glob(filepath.Join(w.dir, "journal*"))
	must(err)
	for _, path := range list {
		r, err := host.Replay(path)
		switch torn := w.starts > 0 || w.disk.wasFull; {
		case err != nil && (!torn || fault.Of(err) == fault.Failed):
			w.fail("%s: %v", path, err)
		case err == nil && r.Difference != nil:
			w.fail("%s: %v", path, r.Difference)
		case err == nil && r.Cut != nil && !torn:
			w.fail("%s is cut off: %v", path, r.Cut)
		}
	}
	if w.script.journal != (len(list) > 0) && !w.disk.wasFull {
		w.fail("journals: %v", list)
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
