package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
)

const (
	// mostTraceBytes bounds the trace files that a server writes, together.
	mostTraceBytes = 256 << 20
	// mostTraceFiles bounds their number.
	mostTraceFiles = 10_000
	// defaultTraceFile is the trace file where no setting names one.
	defaultTraceFile = "trace.json"
)

// tracer writes traces of requests to files, in Triton's format, as the trace settings say. It is safe for concurrent
// use.
type tracer struct {
	root     *os.Root // folder of the files; nil where there are no traces
	settings *settings
	log      *slog.Logger

	on     atomic.Bool // some model is traced
	mu     sync.Mutex
	seen   map[string]int64 // requests by model, of those that are traced
	given  map[string]int64 // traces by model since its trace_count was set
	last   int64            // id of a trace
	files  map[string]*traceFile
	opened int
	bytes  int64
	full   bool
}

// traceFile is a file of traces, a JSON array that is whole after each of them.
type traceFile struct {
	f      *os.File
	size   int64
	traces int // in this file
	number int // of the file, where log_frequency divides them
}

// newTracer opens the folder of traces, and makes it; "" traces nothing.
func newTracer(folder string, s *settings, log *slog.Logger) (*tracer, error) {
	t := &tracer{
		settings: s, log: log, seen: make(map[string]int64), given: make(map[string]int64),
		files: make(map[string]*traceFile),
	}
	if folder == "" {
		return t, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("telemetry.traces: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("telemetry.traces: %w", err)
	}
	t.root = root
	s.traces.folder = true
	return t, nil
}

// close closes all files.
func (t *tracer) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.files {
		_ = f.f.Close()
	}
	t.files = make(map[string]*traceFile)
	if t.root != nil {
		_ = t.root.Close()
	}
}

// changed takes up that settings of a model, or of all for "", have changed.
func (t *tracer) changed(model string, change map[string][]string) {
	t.on.Store(t.root != nil && t.settings.traced())
	if _, ok := change["trace_count"]; !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if model == "" {
		clear(t.given)
	}
	delete(t.given, model)
}

// samples reports whether the next request to a model is traced.
func (t *tracer) samples(model string) bool {
	if !t.on.Load() {
		return false
	}
	now := t.settings.traceNow(model)
	if now["trace_level"][0] != traceTimestamps {
		return false
	}
	rate, count := number(now["trace_rate"]), number(now["trace_count"])
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[model]++
	if t.full || rate < 1 || t.seen[model]%rate != 0 || count >= 0 && t.given[model] >= count {
		return false
	}
	t.given[model]++
	return true
}

func number(value []string) int64 {
	n, _ := strconv.ParseInt(value[0], 10, 64) // checked when it was set
	return n
}

// trace is a trace as Triton writes it, with what ours has beside.
type trace struct {
	ID         int64            `json:"id"`
	Model      string           `json:"model_name,omitempty"`
	Version    int64            `json:"model_version,omitempty"`
	Parent     int64            `json:"parent_id,omitempty"`
	Query      uint64           `json:"query_id,omitempty"`
	Variant    string           `json:"variant,omitempty"`
	Batch      int              `json:"batch_size,omitempty"`
	Error      string           `json:"error,omitempty"`
	Timestamps []traceTimestamp `json:"timestamps"`
}

type traceTimestamp struct {
	Name string `json:"name"`
	NS   int64  `json:"ns"`
}

// record writes the trace of a request that was handed in at a time. Steps of a pipeline are traces of their own.
func (t *tracer) record(m *Model, begun time.Time, answer *dataplane.Response, failed error) {
	ended := time.Now()
	at := func(name string, when time.Time) traceTimestamp { return traceTimestamp{name, when.UnixNano()} }
	whole := trace{Model: m.Name, Timestamps: []traceTimestamp{at("REQUEST_START", begun)}}
	var steps []trace
	if failed != nil {
		e, _ := clientError(failed)
		whole.Error = e.Error()
	} else {
		v, _ := m.Version(answer.Variant)
		whole.Version, _ = strconv.ParseInt(v.Version, 10, 64)
		whole.Query, whole.Variant, whole.Batch = uint64(answer.Query), v.Name, answer.BatchSize
		for k := range answer.Stages {
			s := &answer.Stages[k]
			queued := begun.Add(s.Ready)
			started := queued.Add(s.Queue)
			times := []traceTimestamp{
				at("QUEUE_START", queued), at("COMPUTE_START", started), at("COMPUTE_INPUT_END", started),
				at("COMPUTE_OUTPUT_START", started.Add(s.Run)), at("COMPUTE_END", started.Add(s.Run)),
			}
			if len(answer.Stages) == 1 {
				whole.Timestamps = append(whole.Timestamps, times...)
				continue
			}
			steps = append(steps, trace{Model: s.Stage, Variant: s.Variant, Batch: s.Batch, Timestamps: times})
		}
	}
	whole.Timestamps = append(whole.Timestamps, at("REQUEST_END", ended))
	now := t.settings.traceNow(m.Name)
	name := now["trace_file"][0]
	if name == "" {
		name = defaultTraceFile
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	whole.ID = t.last
	for k := range steps {
		t.last++
		steps[k].ID, steps[k].Parent = t.last, whole.ID
	}
	if err := t.write(name, number(now["log_frequency"]), append([]trace{whole}, steps...)); err != nil {
		t.full = true
		t.log.Error("no further request is traced", "error", err)
	}
}

// write appends the traces of one request to a file, or to the next one where each has so many requests; 0 for no end.
// t.mu is held.
func (t *tracer) write(name string, each int64, list []trace) error {
	f := t.files[name]
	if f != nil && each > 0 && int64(f.traces) >= each {
		_ = f.f.Close()
		f = &traceFile{number: f.number + 1}
	}
	if f == nil {
		f = &traceFile{}
	}
	if f.f == nil {
		if t.opened++; t.opened > mostTraceFiles {
			return fmt.Errorf("there are %d trace files, which is the most", mostTraceFiles)
		}
		path := name
		if each > 0 {
			path += "." + strconv.Itoa(f.number)
		}
		var err error
		if f.f, err = t.root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
			return err
		}
		t.files[name] = f
	}
	text := []byte("[\n")
	if f.size > 0 {
		text = []byte(",\n")
	}
	for k := range list {
		j, err := json.Marshal(&list[k])
		if err != nil {
			return err
		}
		if k > 0 {
			text = append(text, ",\n"...)
		}
		text = append(text, j...)
	}
	text = append(text, "\n]"...)
	if t.bytes += int64(len(text)); t.bytes > mostTraceBytes {
		return fmt.Errorf("the trace files have %d bytes, which is the most", mostTraceBytes)
	}
	at := max(f.size-int64(len("\n]")), 0) // over the end of the array
	if _, err := f.f.WriteAt(text, at); err != nil {
		return err
	}
	f.size, f.traces = at+int64(len(text)), f.traces+1
	return nil
}

// traced writes a trace of a query that the trace settings choose.
func (s *Server) traced(ctx context.Context, q *dataplane.Request, next Infer) (*dataplane.Response, error) {
	if !s.tracer.on.Load() {
		return next(ctx, q)
	}
	m := s.modelOf(q)
	if m == nil || !s.tracer.samples(m.Name) {
		return next(ctx, q)
	}
	asked, begun := q.Timings, time.Now()
	q.Timings = true
	answer, err := next(ctx, q)
	s.tracer.record(m, begun, answer, err)
	if err == nil && !asked {
		answer.Stages = nil
	}
	return answer, err
}

// modelOf is the model that a query is for.
func (s *Server) modelOf(q *dataplane.Request) *Model {
	for _, m := range s.service.Models() {
		for _, x := range m.All() {
			if x.App == q.App && x.Generation == q.Generation {
				return x
			}
		}
	}
	return nil
}

// checkTraceFile returns an error unless a text is the name of a file in the folder of traces.
func checkTraceFile(name string) error {
	if name == "" || len(name) > 100 || strings.HasPrefix(name, ".") || strings.ContainsFunc(name, func(c rune) bool {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		return !letter && c != '.' && c != '-' && c != '_'
	}) {
		return oip.Errorf(oip.Invalid, "trace_file", "is %.100q, want the name of a file in the folder "+
			"telemetry.traces: letters, digits, '.', '-' and '_'", name)
	}
	return nil
}
