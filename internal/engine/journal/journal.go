// Package journal records the inputs and decisions of an engine, one JSON object a line, and reads, replays and
// compares them. A journal holds the whole world of its run (spec, measurements, settings), so that a bug report is one
// file.
package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Version is the format this package writes and reads.
const Version = 1

// maxLine bounds a line of a journal that is read: 16 MiB, about 100,000 inputs in one instant.
const maxLine = 16 << 20

// Header is the first line: everything needed to build the engine again.
type Header struct {
	Journal   int // Version
	System    string
	Router    string
	Batcher   string
	BatchSize int           `json:",omitempty"`
	Timeout   time.Duration `json:",omitempty"`
	Scaler    string        `json:",omitempty"`
	Replan    time.Duration `json:",omitempty"` // interval of the scaler
	Statistic string        // of the measurements, as profile.ParseStatistic names it
	Learn     bool          `json:",omitempty"` // latency was learned, from the measurements where there are any
	// Settings are the other options of the engine's parts, as a configuration names them.
	Settings     map[string]string `json:",omitempty"`
	Provides     plan.Sections
	Spec         *serving.Spec
	Measurements serving.Measurements
}

// Bounds on a table of latencies from a file.
const (
	mostItems      = 1 << 20
	mostConcurrent = 1 << 16
)

// Believed returns the profile of the recorded run, from the recorded measurements; nil where the run learned and had
// none.
func (h *Header) Believed(spec *serving.Spec, m serving.Measurements) (profile.Profile, error) {
	statistic, err := profile.ParseStatistic(h.Statistic)
	if err != nil || h.Learn && len(m.Latency) == 0 {
		return nil, err
	}
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	for _, v := range spec.Variants {
		if v.MaxBatch > mostItems {
			return nil, fmt.Errorf("variant %q takes batches of %d items, more than %d", v.Name, v.MaxBatch, mostItems)
		}
	}
	for i, p := range m.Latency {
		if p.Concurrency > mostConcurrent {
			return nil, fmt.Errorf("latency point %d is of %d batches at once, more than %d", i, p.Concurrency,
				mostConcurrent)
		}
	}
	return profile.NewTable(spec, m, statistic)
}

// Step is one call of Engine.Step. Decisions are kept as their strings.
type Step struct {
	At  serving.Time   `json:"at"`
	In  []engine.Input `json:"-"`
	Out []string       `json:"out,omitempty"`
	// Crash is why the engine did not end the step, and the run ends here; empty where it did.
	Crash string `json:"crash,omitempty"`
}

// input is the compact form of engine.Input. Variants are counted from 1; 0 means none.
type input struct {
	Kind     string        `json:"k"`
	Query    uint64        `json:"q,omitempty"`
	App      int32         `json:"app,omitempty"`
	Arrived  int64         `json:"arr,omitempty"`
	Deadline int64         `json:"dl,omitempty"`
	Items    int32         `json:"n,omitempty"`
	Length   int32         `json:"len,omitempty"`
	Priority int32         `json:"pr,omitempty"`
	Accuracy float64       `json:"acc,omitempty"`
	Variant  int32         `json:"v,omitempty"`
	Stream   uint64        `json:"st,omitempty"`
	Slack    time.Duration `json:"slack,omitempty"`
	Timeout  time.Duration `json:"qt,omitempty"`
	Expires  int64         `json:"ex,omitempty"`
	Own      bool          `json:"own,omitempty"`
	Tenant   int32         `json:"tn,omitempty"`
	Batch    uint64        `json:"b,omitempty"`
	Instance int32         `json:"i,omitempty"`
	Broken   bool          `json:"broken,omitempty"`
	Exceeded bool          `json:"oom,omitempty"`
	Took     time.Duration `json:"took,omitempty"`
	Emitted  []int32       `json:"sent,omitempty"`
	Lengths  []int32       `json:"lens,omitempty"`
	Sure     []float32     `json:"sure,omitempty"`
	Change   string        `json:"ch,omitempty"`
	Plan     *plan.Plan    `json:"plan,omitempty"`
	Seq      uint64        `json:"seq,omitempty"`
	Err      string        `json:"err,omitempty"`
	Device   int32         `json:"d,omitempty"`
	Price    float64       `json:"usd,omitempty"`
	Rate     float64       `json:"rate,omitempty"`
	Grown    *grown        `json:"grown,omitempty"`
	Memory   []byte        `json:"mem,omitempty"`
	Older    time.Duration `json:"older,omitempty"`
	Worker   int32         `json:"w,omitempty"`
	For      time.Duration `json:"for,omitempty"`
	Idle     time.Duration `json:"idle,omitempty"`
}

// grown is the world of a spec-grown.
type grown struct {
	Spec         *serving.Spec
	Measurements serving.Measurements
}

type line struct {
	At    serving.Time `json:"at"`
	In    []input      `json:"in,omitempty"`
	Out   []string     `json:"out,omitempty"`
	Crash string       `json:"crash,omitempty"`
}

// Writer writes a journal. After an error every later call returns that error.
type Writer struct {
	w   *bufio.Writer
	enc *json.Encoder
	err error
	buf line
}

// NewWriter writes the header.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	b := bufio.NewWriterSize(w, 1<<16)
	j := &Writer{w: b, enc: json.NewEncoder(b)}
	h.Journal = Version
	j.err = j.enc.Encode(h)
	return j, j.err
}

// Step records a step, even one without inputs and decisions: the scaler may have decided when to decide again, and a
// replay without that step would do so at other times.
func (j *Writer) Step(now serving.Time, in []engine.Input, out []engine.Decision) error {
	if j.err != nil {
		return j.err
	}
	j.buf.At, j.buf.In, j.buf.Out = now, j.buf.In[:0], j.buf.Out[:0]
	for i := range in {
		j.buf.In = append(j.buf.In, compact(&in[i]))
	}
	for i := range out {
		j.buf.Out = append(j.buf.Out, out[i].String())
	}
	j.err = j.enc.Encode(&j.buf)
	return j.err
}

// Crash records what the engine was told in a step that it did not end, and why. It is the last step.
func (j *Writer) Crash(now serving.Time, in []engine.Input, why string) error {
	j.buf.Crash = why
	return j.Step(now, in, nil)
}

// Flush writes what is buffered.
func (j *Writer) Flush() error {
	if j.err == nil {
		j.err = j.w.Flush()
	}
	return j.err
}

// compact keeps the fields that count for the kind of an input; see engine.Input.
func compact(in *engine.Input) input {
	c := input{Kind: in.Kind.String()}
	switch in.Kind {
	case engine.BatchDone:
		c.Batch, c.Instance, c.Broken, c.Took, c.Emitted = uint64(in.Batch), int32(in.Instance),
			in.Result == engine.Broken, in.Took, in.Emitted
		c.Exceeded, c.Sure, c.Lengths = in.Result == engine.Exceeded, in.Confidence, in.Lengths
	case engine.MachineChanged:
		c.Worker, c.Change, c.For, c.Took = int32(in.Worker), in.Machine.String(), in.For, in.Took
	case engine.InstanceChanged:
		c.Instance, c.Change, c.Variant = int32(in.Instance), in.Change.String(), int32(in.Variant)+1
	case engine.PriceChanged:
		c.Device, c.Price = int32(in.DeviceType), in.Price
	case engine.SpecGrown:
		c.Grown = &grown{in.Growth.Spec, in.Growth.Measurements}
	case engine.IdleRecalled:
		c.App, c.Memory, c.Older, c.Idle = int32(in.Recalled.App), in.Recalled.Memory, in.Recalled.Older,
			in.Recalled.Idle
	case engine.StreamOpened, engine.StreamClosed:
		c.App, c.Stream, c.Rate = int32(in.Query.App), in.Query.Stream, in.Rate
	case engine.PlanReady:
		c.Plan = in.Plan
	case engine.PlanFailed:
		c.Seq, c.Err = in.Failure.Seq, in.Failure.Err
	case engine.QueryArrived:
		q := &in.Query
		c.Query, c.App, c.Arrived, c.Deadline, c.Items, c.Priority = uint64(q.ID), int32(q.App), int64(q.Arrived),
			int64(q.Deadline), q.Items, q.Priority
		c.Accuracy, c.Variant, c.Stream, c.Slack = q.MinAccuracy, int32(q.Variant)+1, q.Stream, q.Slack
		c.Timeout, c.Expires = q.QueueTimeout, int64(q.Expires)
		c.Own, c.Tenant, c.Length = q.Own, q.Tenant, q.Length
	case engine.QueryCancelled:
		c.Query = uint64(in.Query.ID)
	}
	return c
}

// expand is the inverse of compact.
func (c *input) expand(h *Header) (engine.Input, error) {
	none := engine.Input{Variant: serving.None}
	app, instance := serving.AppID(c.App), serving.InstanceID(c.Instance)
	switch c.Kind {
	case engine.BatchDone.String():
		in := engine.NewBatchDone(serving.BatchID(c.Batch), instance, c.Took, c.Emitted)
		in.Confidence, in.Lengths = c.Sure, c.Lengths
		if c.Broken {
			in.Result = engine.Broken
		}
		if c.Exceeded {
			in.Result = engine.Exceeded
		}
		return in, nil
	case engine.MachineChanged.String():
		change, ok := engine.ParseMachineChange(c.Change)
		if !ok {
			return none, fmt.Errorf("machine change %q is unknown", c.Change)
		}
		return engine.NewMachineChanged(serving.WorkerID(c.Worker), change, c.For+c.Took), nil
	case engine.InstanceChanged.String():
		switch v := serving.VariantID(c.Variant - 1); c.Change {
		case engine.VariantReady.String():
			return engine.NewVariantReady(instance, v), nil
		case engine.LoadFailed.String():
			return engine.NewLoadFailed(instance, v), nil
		case engine.Lost.String():
			return engine.NewInstanceLost(instance), nil
		}
		return none, fmt.Errorf("instance change %q is unknown", c.Change)
	case engine.PriceChanged.String():
		return engine.NewPriceChanged(serving.DeviceTypeID(c.Device), c.Price), nil
	case engine.SpecGrown.String():
		if c.Grown == nil || c.Grown.Spec == nil {
			return none, errors.New("spec-grown without a spec")
		}
		p, err := h.Believed(c.Grown.Spec, c.Grown.Measurements)
		return engine.NewSpecGrown(&engine.Growth{
			Spec: c.Grown.Spec, Known: plan.Known{Profile: p, Measurements: c.Grown.Measurements},
		}), err
	case engine.IdleRecalled.String():
		if c.Older < 0 || c.Idle < c.Older {
			return none, fmt.Errorf("idle times of %v ago of an app idle for %v", c.Older, c.Idle)
		}
		return engine.NewIdleRecalled(&engine.Recalled{App: app, Memory: c.Memory, Older: c.Older, Idle: c.Idle}), nil
	case engine.StreamOpened.String():
		return engine.NewStreamOpened(app, c.Stream, c.Rate), nil
	case engine.StreamClosed.String():
		return engine.NewStreamClosed(app, c.Stream), nil
	case engine.PlanReady.String():
		if c.Plan == nil {
			return none, errors.New("plan-ready without a plan")
		}
		return engine.NewPlanReady(c.Plan), nil
	case engine.PlanFailed.String():
		return engine.NewPlanFailed(c.Seq, errors.New(c.Err)), nil // without a text in journals of earlier versions
	case engine.QueryArrived.String():
		return engine.NewQueryArrived(serving.Query{
			ID: serving.QueryID(c.Query), App: app, Arrived: serving.Time(c.Arrived),
			Deadline: serving.Time(c.Deadline), Items: c.Items, Priority: c.Priority, MinAccuracy: c.Accuracy,
			Variant: serving.VariantID(c.Variant - 1), Stream: c.Stream, Slack: c.Slack,
			QueueTimeout: c.Timeout, Expires: serving.Time(c.Expires),
			Own: c.Own, Tenant: c.Tenant, Length: c.Length,
		}), nil
	case engine.QueryCancelled.String():
		return engine.NewQueryCancelled(serving.QueryID(c.Query)), nil
	}
	return none, fmt.Errorf("input kind %q is unknown", c.Kind)
}

// Reader reads a journal.
type Reader struct {
	s      *bufio.Scanner
	header Header
	n      int
	open   bool // the latest line has no end
}

// Head is what journals begin with.
const Head = `{"Journal":`

// Cut is the error of a journal that ends within a line: the program that wrote it was killed, or its disk was full.
// All lines before are whole.
type Cut struct{ Line int }

func (e *Cut) Error() string {
	if e.Line == 1 {
		return "the journal is cut off in line 1: nothing of the run is in it"
	}
	return fmt.Sprintf("the journal is cut off in line %d: what came after line %d is not in it", e.Line, e.Line-1)
}

// lines is bufio.ScanLines, and notes a last line without an end.
func (j *Reader) lines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	advance, line, err = bufio.ScanLines(data, atEOF)
	j.open = advance > 0 && data[advance-1] != '\n'
	return advance, line, err
}

// parse reads the latest line.
func (j *Reader) parse(into any) error {
	err := json.Unmarshal(j.s.Bytes(), into)
	switch {
	case err == nil:
		return nil
	case j.n == 1 && !bytes.HasPrefix(j.s.Bytes(), []byte(Head)[:min(len(Head), len(j.s.Bytes()))]):
		return errors.New("this is no journal, as serve and simulate write with --journal")
	case j.open:
		return &Cut{j.n}
	}
	return fmt.Errorf("journal line %d: %w", j.n, err)
}

// NewReader reads the header.
func NewReader(r io.Reader) (*Reader, error) {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 1<<16), maxLine)
	j := &Reader{s: s}
	s.Split(j.lines)
	if !s.Scan() {
		if err := s.Err(); err != nil {
			return nil, fmt.Errorf("journal line 1: %w", err)
		}
		return nil, errors.New("journal line 1: the file is empty")
	}
	j.n = 1
	if err := j.parse(&j.header); err != nil {
		return nil, err
	}
	if j.header.Journal != Version {
		return nil, fmt.Errorf("journal line 1: version %d, this program reads version %d", j.header.Journal, Version)
	}
	if j.header.Spec == nil {
		return nil, errors.New("journal line 1: Spec is missing")
	}
	if err := j.header.Spec.Validate(); err != nil {
		return nil, fmt.Errorf("journal line 1: Spec: %w", err)
	}
	return j, nil
}

// Header returns the first line.
func (j *Reader) Header() Header { return j.header }

// Next returns the next step, or io.EOF. The error is a *Cut where the journal ends within a line.
func (j *Reader) Next() (Step, error) {
	if !j.s.Scan() {
		if err := j.s.Err(); err != nil {
			return Step{}, fmt.Errorf("journal line %d: %w", j.n+1, err)
		}
		return Step{}, io.EOF
	}
	j.n++
	var l line
	if err := j.parse(&l); err != nil {
		return Step{}, err
	}
	st := Step{At: l.At, Out: l.Out, Crash: l.Crash}
	for i := range l.In {
		in, err := l.In[i].expand(&j.header)
		if err != nil {
			return Step{}, fmt.Errorf("journal line %d, input %d: %w", j.n, i, err)
		}
		st.In = append(st.In, in)
	}
	return st, nil
}

// Difference is the first step at which a replay decided differently.
type Difference struct {
	Line      int
	At        serving.Time
	Recorded  []string
	Decided   []string
	FirstItem int // index of the first decision that differs
}

// String shows the difference.
func (d *Difference) String() string {
	at := func(s []string) string {
		if d.FirstItem < len(s) {
			return s[d.FirstItem]
		}
		return "nothing"
	}
	return fmt.Sprintf("journal line %d, at %v, decision %d: recorded %q, decided %q", d.Line, d.At, d.FirstItem,
		at(d.Recorded), at(d.Decided))
}

// Crash is the end of a run whose engine crashed, in a step that the present version ends.
type Crash struct {
	Line int
	At   serving.Time
	Why  string
}

// Error implements error.
func (c *Crash) Error() string {
	return fmt.Sprintf("journal line %d, at %v: the run ended here, since %s; this version does not crash there",
		c.Line,
		c.At, c.Why)
}

// Replay gives the recorded inputs to a new engine and returns the first difference, or nil when every decision is the
// same. between, which may be nil, is called after every step, to check invariants, for instance. Steps come at the
// recorded times, so that timers fire as in the run. Where the recorded engine crashed, so does this one, or the error
// is a Crash.
func Replay(r *Reader, e *engine.Engine, between func(Step) error) (*Difference, error) {
	for {
		st, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		out := e.Step(st.At, st.In)
		if st.Crash != "" {
			return nil, &Crash{Line: r.n, At: st.At, Why: st.Crash}
		}
		got := make([]string, len(out))
		for i := range out {
			got[i] = out[i].String()
		}
		if !slices.Equal(got, st.Out) {
			d := &Difference{Line: r.n, At: st.At, Recorded: st.Out, Decided: got}
			for d.FirstItem < min(len(got), len(st.Out)) && got[d.FirstItem] == st.Out[d.FirstItem] {
				d.FirstItem++
			}
			return d, nil
		}
		if between != nil {
			if err := between(st); err != nil {
				return nil, err
			}
		}
	}
}
