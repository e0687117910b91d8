package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/engine/journal"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
)

// Explanation is the history of one query with the reasons of decisions.
type Explanation struct {
	Query       serving.QueryID `json:"query"`
	App         string          `json:"app"`
	ArrivedS    float64         `json:"arrived_s"`
	DeadlineMS  float64         `json:"deadline_ms"` // ms after its arrival
	Items       int32           `json:"items"`
	Priority    int32           `json:"priority,omitempty"`
	MinAccuracy float64         `json:"min_accuracy,omitempty"`
	Tenant      string          `json:"tenant,omitempty"`
	Pinned      string          `json:"pinned,omitempty"`
	Runs        []Run           `json:"runs,omitempty"`
	Outcome     string          `json:"outcome,omitempty"` // empty before its end
	Reason      string          `json:"reason,omitempty"`
	LatencyMS   float64         `json:"latency_ms,omitempty"` // from arrival to end
	Late        bool            `json:"late,omitempty"`
	Accuracy    float64         `json:"accuracy,omitempty"`

	app      serving.AppID
	arrived  serving.Time
	deadline serving.Time
	ended    serving.Time // serving.Never before
	pin      serving.VariantID
}

// Run is a batch that the query was in. A query has several when its app has several stages or a batch failed.
type Run struct {
	Stage      string            `json:"stage,omitempty"`
	Batch      serving.BatchID   `json:"batch"`
	Instance   int32             `json:"instance"`
	Variant    string            `json:"variant"`
	Why        string            `json:"why"` // reason why the batch started
	Items      int32             `json:"items"`
	With       []serving.QueryID `json:"with,omitempty"`                 // other queries of the batch, at most 32
	WaitTurn   float64           `json:"waited_for_stream_ms,omitempty"` // wait for earlier queries of its stream
	WaitRoute  float64           `json:"waited_for_instance_ms"`
	WaitTotal  float64           `json:"waited_ms"`
	StartedS   float64           `json:"started_s"`
	ExpectedMS float64           `json:"expected_ms"`
	TookMS     float64           `json:"took_ms,omitempty"` // 0 while it runs, and when its instance was lost
	Failed     bool              `json:"failed,omitempty"`
	NoMemory   bool              `json:"out_of_memory,omitempty"` // failed because the device lacked memory for it
	Weighed    *Weighed          `json:"weighed,omitempty"`       // not to be changed

	stage   serving.StageID
	own     int32 // items of the query itself
	started serving.Time
	ready   serving.Time // the stage could begin
	members []serving.QueryID
}

// maxCompanions is the most other queries of a batch that an explanation names.
const maxCompanions = 32

// recentQueries keeps the explanations of the latest queries.
type recentQueries struct {
	mu       sync.Mutex
	spec     *serving.Spec
	ring     []Explanation // by QueryID modulo its length
	batches  map[serving.BatchID]batchMembers
	weighed  map[serving.InstanceID]*Weighed // of the latest batch that an instance was given
	only     serving.QueryID                 // if not 0, the only query that is kept
	answered serving.QueryID                 // the latest that was served; 0 for none
}

// batchMembers are the queries of a running batch, and its instance.
type batchMembers struct {
	instance serving.InstanceID
	queries  []serving.QueryID
}

func newRecentQueries(spec *serving.Spec, n int) *recentQueries {
	return &recentQueries{
		spec: spec, ring: make([]Explanation, n), batches: make(map[serving.BatchID]batchMembers),
		weighed: make(map[serving.InstanceID]*Weighed),
	}
}

func (m *recentQueries) grow(spec *serving.Spec) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fresh := spec.FreshSince(m.spec)
	if fresh.Within(m.spec) {
		// Explanations keep their names. Nothing else is to be asked about an app whose place is used again.
		for k := range m.ring {
			x := &m.ring[k]
			if slices.Contains(fresh.Apps, x.app) {
				x.app = serving.None
			}
			if slices.Contains(fresh.Variants, x.pin) {
				x.pin = serving.None
			}
		}
	}
	m.spec = spec
}

func (m *recentQueries) find(id serving.QueryID) *Explanation {
	x := &m.ring[uint64(id)%uint64(len(m.ring))]
	if x.Query != id || id == 0 {
		return nil
	}
	return x
}

func (m *recentQueries) observe(now serving.Time, in []engine.Input, out []engine.Decision) {
	if len(in) == 0 && len(out) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for k := range in {
		switch x := &in[k]; x.Kind {
		case engine.QueryArrived:
			m.arrived(&x.Query)
		case engine.BatchDone:
			m.done(x)
		case engine.InstanceChanged:
			if x.Change == engine.Lost {
				delete(m.weighed, x.Instance)
			}
		}
	}
	for k := range out {
		switch d := &out[k]; d.Kind {
		case engine.StartBatch:
			m.started(now, d)
		case engine.StopInstance: // its batches never report an end
			delete(m.weighed, d.Instance)
			for id, c := range m.batches {
				if c.instance == d.Instance {
					delete(m.batches, id)
				}
			}
		case engine.EndQuery:
			if x := m.find(d.Query); x != nil {
				x.Outcome, x.Reason, x.Late, x.Accuracy = d.Outcome.String(), d.Reason.String(), d.Late, d.Accuracy
				x.LatencyMS, x.ended = ms(now.Sub(d.Arrived)), now
				if d.Outcome == serving.Served {
					m.answered = d.Query
				}
			}
		}
	}
}

func (m *recentQueries) arrived(q *serving.Query) {
	if m.only != 0 && q.ID != m.only {
		return
	}
	x := &m.ring[uint64(q.ID)%uint64(len(m.ring))]
	*x = Explanation{Query: q.ID, ArrivedS: q.Arrived.Seconds(), DeadlineMS: ms(q.Deadline.Sub(q.Arrived)),
		Items: q.Items, Priority: q.Priority, MinAccuracy: q.MinAccuracy,
		Runs: x.Runs[:0], app: q.App, arrived: q.Arrived, deadline: q.Deadline, ended: serving.Never, pin: q.Variant}
	if q.App >= 0 && int(q.App) < len(m.spec.Apps) {
		x.App = m.spec.Apps[q.App].Name
	}
	if q.Tenant > 0 && int(q.Tenant) <= len(m.spec.Tenants) {
		x.Tenant = m.spec.Tenants[q.Tenant-1].Name
	}
	if q.Variant >= 0 && int(q.Variant) < len(m.spec.Variants) {
		x.Pinned = m.spec.Variants[q.Variant].Name
	}
}

func (m *recentQueries) started(now serving.Time, d *engine.Decision) {
	ids := make([]serving.QueryID, len(d.Tasks))
	for k := range d.Tasks {
		ids[k] = d.Tasks[k].Query
	}
	m.batches[d.Batch] = batchMembers{d.Instance, ids}
	weighed := m.weighed[d.Instance]
	stage := &m.spec.Stages[d.Stage]
	for k := range d.Tasks {
		x := m.find(ids[k])
		if x == nil {
			continue
		}
		r := Run{Batch: d.Batch, Instance: int32(d.Instance), Variant: m.spec.Variants[d.Variant].Name,
			Why: d.Reason.String(), Items: d.Items,
			WaitTurn: ms(d.Tasks[k].Turn), WaitRoute: ms(d.Tasks[k].Route), WaitTotal: ms(d.Tasks[k].Queue),
			StartedS: now.Seconds(), ExpectedMS: ms(d.Expected), Weighed: weighed,
			stage: d.Stage, own: d.Tasks[k].Items, started: now, ready: now.Add(-d.Tasks[k].Queue)}
		if len(m.spec.Apps[stage.App].Stages) > 1 {
			r.Stage = stage.Name
		}
		x.Runs = append(x.Runs, r)
	}
}

func (m *recentQueries) done(in *engine.Input) {
	ids := m.batches[in.Batch].queries
	delete(m.batches, in.Batch)
	for _, id := range ids {
		x := m.find(id)
		if x == nil {
			continue
		}
		for k := range x.Runs {
			if r := &x.Runs[k]; r.Batch == in.Batch {
				r.TookMS, r.Failed = ms(in.Took), in.Result != engine.OK
				r.NoMemory = in.Result == engine.Exceeded
				r.members = ids // With is made when somebody asks
			}
		}
	}
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// Explain returns the explanation of a recent query, as a copy; false when the query is unknown or too old.
func (t *Telemetry) Explain(id serving.QueryID) (*Explanation, bool) {
	t.recent.mu.Lock()
	defer t.recent.mu.Unlock()
	x := t.recent.find(id)
	if x == nil {
		return nil, false
	}
	out := *x
	out.Runs = append([]Run(nil), x.Runs...)
	for k := range out.Runs {
		r := &out.Runs[k]
		for _, other := range r.members {
			if other != id && len(r.With) < maxCompanions {
				r.With = append(r.With, other)
			}
		}
	}
	return &out, true
}

// Answered returns the latest query that was served and is remembered; 0 for none.
func (t *Telemetry) Answered() serving.QueryID {
	t.recent.mu.Lock()
	defer t.recent.mu.Unlock()
	return t.recent.answered
}

// ExplainJournal returns the explanation of a query in a recorded run, which it replays. It returns an error when the
// query is not in the journal, or when this version of the program decides differently.
func ExplainJournal(r io.Reader, id serving.QueryID) (*Explanation, error) {
	j, err := journal.NewReader(r)
	if err != nil {
		return nil, err
	}
	e, err := systems.Recorded(j.Header())
	if err != nil {
		return nil, err
	}
	t := New(j.Header().Spec, Options{Decisions: 1, Queries: 1})
	t.recent.only = id
	e.Watch(t.Weigh)
	var cut *journal.Cut
	for {
		st, err := j.Next()
		if errors.Is(err, io.EOF) || errors.As(err, &cut) {
			break
		}
		if err != nil {
			return nil, err
		}
		out := e.Step(st.At, st.In)
		for k := range out {
			if k >= len(st.Out) || out[k].String() != st.Out[k] {
				return nil, fmt.Errorf("at %v this version of the program decides otherwise than the recorded one: "+
					"see 'sluice replay'", st.At)
			}
		}
		for k := range st.In {
			if st.In[k].Kind == engine.SpecGrown {
				t.recent.grow(st.In[k].Growth.Spec)
			}
		}
		t.recent.observe(st.At, st.In, out)
	}
	x, ok := t.Explain(id)
	switch {
	case ok:
		return x, nil
	case cut != nil:
		return nil, fmt.Errorf("query %d is not in what there is of this journal: %w", id, cut)
	}
	return nil, fmt.Errorf("query %d is not in this journal", id)
}

// Text writes the explanation as text.
func (x *Explanation) Text(w io.Writer) error {
	p := func(format string, args ...any) error { _, err := fmt.Fprintf(w, format, args...); return err }
	if err := p("query %d of app %q: arrived at %.6f s, due %.1f ms later, %d item(s)", x.Query, x.App, x.ArrivedS,
		x.DeadlineMS, x.Items); err != nil {
		return err
	}
	if x.Priority > 0 {
		_ = p(", priority %d", x.Priority)
	}
	if x.Tenant != "" {
		_ = p(", of tenant %s", x.Tenant)
	}
	if x.MinAccuracy > 0 {
		_ = p(", accuracy at least %.3f", x.MinAccuracy)
	}
	if x.Pinned != "" {
		_ = p(", pinned to %s", x.Pinned)
	}
	_ = p("\n")
	for _, r := range x.Runs {
		where := ""
		if r.Stage != "" {
			where = "stage " + r.Stage + ": "
		}
		_ = p("  %swaited %.3f ms, ", where, r.WaitTotal)
		if r.WaitTurn > 0 {
			_ = p("%.3f of it for earlier queries of its stream, ", r.WaitTurn)
		}
		_ = p("%.3f of it for an instance\n", r.WaitRoute)
		_ = p("  %.6f s  batch %d on instance %d, variant %s, %d item(s), because: %s\n", r.StartedS, r.Batch,
			r.Instance, r.Variant, r.Items, r.Why)
		if r.Weighed != nil {
			r.Weighed.text(w)
		}
		if len(r.With) > 0 {
			_ = p("             together with queries %v\n", r.With)
		}
		switch {
		case r.NoMemory:
			_ = p("             the device lacked memory for it, after %.3f ms; run again in smaller batches\n",
				r.TookMS)
		case r.Failed:
			_ = p("             failed after %.3f ms; run again\n", r.TookMS)
		case r.TookMS > 0:
			_ = p("             took %.3f ms, %.3f were expected\n", r.TookMS, r.ExpectedMS)
		default:
			_ = p("             %.3f ms were expected\n", r.ExpectedMS)
		}
	}
	if x.Outcome == "" {
		return p("  has not ended\n")
	}
	lateness := ""
	if x.Late {
		lateness = ", late"
	}
	if x.Accuracy > 0 {
		lateness += fmt.Sprintf(", accuracy %.3f", x.Accuracy)
	}
	return p("  %s after %.3f ms%s: %s\n", x.Outcome, x.LatencyMS, lateness, x.Reason)
}

// Explanations returns a handler that writes the explanation of ?query=ID, as text or as JSON for clients that accept
// it.
func (t *Telemetry) Explanations() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseUint(r.URL.Query().Get("query"), 10, 64)
		if err != nil {
			http.Error(w, "give ?query=NUMBER", http.StatusBadRequest)
			return
		}
		x, ok := t.Explain(serving.QueryID(id))
		if !ok {
			http.Error(w, fmt.Sprintf("query %d is unknown, or longer ago than the latest %d that are remembered", id,
				len(t.recent.ring)), http.StatusNotFound)
			return
		}
		if wantsJSON(r) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(x)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = x.Text(w)
	})
}
