package steps

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

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
	Length      int32           `json:"length,omitempty"` // of its longest item; 0 where it is not known
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
	Confidence  *float32        `json:"confidence,omitempty"` // of its first answer; nil where it is not known
}

// Run is a batch that the query was in. A query has several when its app has several stages or a batch failed.
type Run struct {
	Stage      string            `json:"stage,omitempty"`
	Batch      serving.BatchID   `json:"batch"`
	Instance   int32             `json:"instance"`
	Variant    string            `json:"variant"`
	Why        string            `json:"why"` // reason why the batch started
	Items      int32             `json:"items"`
	Own        int32             `json:"own_items"`                      // of them of this query
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
}

// maxCompanions is the most other queries of a batch that an explanation names.
const maxCompanions = 32

// Explain returns the explanation of a recent query; false when the query is unknown or too old.
func (l *Log) Explain(id serving.QueryID) (*Explanation, bool) {
	l.Lock()
	defer l.Unlock()
	q := l.find(id)
	if q == nil {
		return nil, false
	}
	x := &Explanation{
		Query: q.ID, App: q.app, ArrivedS: q.Arrived.Seconds(), DeadlineMS: ms(q.Deadline.Sub(q.Arrived)),
		Items: q.Items, Length: q.Length, Priority: q.Priority, MinAccuracy: q.MinAccuracy, Tenant: q.tenant,
		Pinned: q.pinned,
	}
	for _, p := range q.parts {
		x.Runs = append(x.Runs, p.run())
	}
	if q.ended != serving.Never {
		x.Outcome, x.Reason, x.Late, x.Accuracy = q.outcome.String(), q.reason.String(), q.late, q.accuracy
		x.LatencyMS = ms(q.ended.Sub(q.Arrived))
		if sure := q.sure; q.certain {
			x.Confidence = &sure
		}
	}
	return x, true
}

// run shows a part of a query.
func (p part) run() Run {
	out := Run{
		Stage: p.stageName, Batch: p.ID, Instance: int32(p.Instance), Variant: p.variantName, Why: p.Why.String(),
		Items: p.Items, Own: p.items,
		WaitTurn: ms(p.task.Turn), WaitRoute: ms(p.task.Route), WaitTotal: ms(p.task.Queue),
		StartedS: p.Started.Seconds(), ExpectedMS: ms(p.Expected), Weighed: p.weighed,
	}
	if !p.Done {
		return out
	}
	out.TookMS, out.Failed, out.NoMemory = ms(p.Took), p.Result != engine.OK, p.Result == engine.Exceeded
	for k := range p.Tasks {
		other := p.Tasks[k].Query
		if other != p.task.Query && len(out.With) < maxCompanions && !slices.Contains(out.With, other) {
			out.With = append(out.With, other)
		}
	}
	return out
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
	l := New(j.Header().Spec, Options{Decisions: 1, Queries: 1, Batches: 1, Only: id})
	e.Watch(l.Weigh)
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
		l.Observe(st.At, st.In, out)
	}
	x, ok := l.Explain(id)
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
	if x.Length > 0 {
		_ = p(", length %d", x.Length)
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
		own := ""
		if r.Own < x.Items {
			own = fmt.Sprintf(", %d of them its own", r.Own)
		}
		_ = p("  %.6f s  batch %d on instance %d, variant %s, %d item(s)%s, because: %s\n", r.StartedS, r.Batch,
			r.Instance, r.Variant, r.Items, own, r.Why)
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
	if x.Confidence != nil {
		lateness += fmt.Sprintf(", confidence of the first answer %.2f", *x.Confidence)
	}
	return p("  %s after %.3f ms%s: %s\n", x.Outcome, x.LatencyMS, lateness, x.Reason)
}

// Explanations returns a handler that writes the explanation of ?query=ID, as text or as JSON for clients that accept
// it.
func (l *Log) Explanations() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseUint(r.URL.Query().Get("query"), 10, 64)
		if err != nil {
			http.Error(w, "give ?query=NUMBER", http.StatusBadRequest)
			return
		}
		x, ok := l.Explain(serving.QueryID(id))
		if !ok {
			http.Error(w, fmt.Sprintf("query %d is unknown, or longer ago than the latest %d that are remembered", id,
				len(l.queries)), http.StatusNotFound)
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
