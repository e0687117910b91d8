package steps

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// entry is a decision that is kept.
type entry struct {
	at       serving.Time
	decision engine.Decision
	// Names of then: places in the spec's tables may be used again.
	app, variant string
}

// decisions has the latest decisions and sends them to followers. Writing never waits for a reader.
type decisions struct {
	ring      []entry
	n         int // so far
	followers map[*follower]bool
}

// follower is a client that streams decisions. Decisions that do not fit into its buffer are lost and counted.
type follower struct {
	lines chan entry
	lost  int
}

// followerBuffer is the number of decisions by which a slow client may be behind.
const followerBuffer = 1024

// maxFollowers is the most clients that stream at the same time. Each costs a copy of every decision.
const maxFollowers = 16

func newDecisions(n int) decisions {
	return decisions{ring: make([]entry, n), followers: make(map[*follower]bool)}
}

// add keeps a decision, with the batch that it starts, if it does.
func (l *decisions) add(now serving.Time, spec *serving.Spec, d *engine.Decision, b *Batch) {
	e := &l.ring[l.n%len(l.ring)]
	l.n++
	e.at, e.decision, e.decision.Tasks = now, *d, nil
	if b != nil {
		e.decision.Tasks = b.Tasks
	}
	e.name(spec)
	if r := d.Request; r != nil {
		said := *r // but for what is large and of no use here
		said.Snapshot, said.Beliefs, said.Known, said.Spec = &fleet.Snapshot{Seq: r.Snapshot.Seq}, nil, nil, nil
		e.decision.Request = &said
	}
	for f := range l.followers {
		select {
		case f.lines <- *e:
		default:
			f.lost++
		}
	}
}

// follow has f, unless it is nil, receive all decisions from now on, and returns the last n before, oldest first. It
// returns false when maxFollowers follow already.
func (l *Log) follow(n int, f *follower) (out []entry, ok bool) {
	l.Lock()
	defer l.Unlock()
	x := &l.decisions
	if f != nil {
		if len(x.followers) >= maxFollowers {
			return nil, false
		}
		x.followers[f] = true
	}
	for k := x.n - min(n, x.n, len(x.ring)); k < x.n; k++ {
		out = append(out, x.ring[k%len(x.ring)])
	}
	return out, true
}

func (l *Log) unfollow(f *follower) {
	l.Lock()
	delete(l.decisions.followers, f)
	l.Unlock()
}

func (l *Log) takeLost(f *follower) int {
	l.Lock()
	defer l.Unlock()
	n := f.lost
	f.lost = 0
	return n
}

// name notes the names of what a decision is about.
func (e *entry) name(spec *serving.Spec) {
	d := &e.decision
	e.app, e.variant = "", ""
	if d.Variant >= 0 && int(d.Variant) < len(spec.Variants) &&
		(d.Kind == engine.StartBatch || d.Kind == engine.LoadVariant || d.Kind == engine.UnloadVariant ||
			d.Kind == engine.EndQuery && d.Outcome == serving.Served) {
		e.variant = spec.Variants[d.Variant].Name
	}
	switch {
	case d.Kind == engine.StartBatch:
		e.app = spec.Apps[spec.Stages[d.Stage].App].Name
	case d.Kind == engine.EndQuery && int(d.App) < len(spec.Apps) && d.App >= 0:
		e.app = spec.Apps[d.App].Name
	}
}

// DecisionLine is a decision as it is shown.
type DecisionLine struct {
	At       float64           `json:"at_s"`
	Kind     string            `json:"kind"`
	Reason   string            `json:"reason"`
	App      string            `json:"app,omitempty"`
	Query    serving.QueryID   `json:"query,omitempty"`
	Outcome  string            `json:"outcome,omitempty"`
	Late     bool              `json:"late,omitempty"`
	Instance int32             `json:"instance,omitempty"`
	Batch    uint64            `json:"batch,omitempty"`
	Variant  string            `json:"variant,omitempty"`
	Items    int32             `json:"items,omitempty"`
	Expected float64           `json:"expected_ms,omitempty"`
	Queue    float64           `json:"queue_ms,omitempty"`
	Queries  []serving.QueryID `json:"queries,omitempty"`
	Error    string            `json:"error,omitempty"`
}

// line writes a decision with names instead of ids.
func (e *entry) line(asJSON bool) []byte {
	d, variant := &e.decision, e.variant
	if !asJSON {
		text := d.String()
		if variant != "" {
			text = strings.Replace(text, fmt.Sprintf("variant %d", d.Variant), "variant "+variant, 1)
		}
		return fmt.Appendf(nil, "%12.6f %s\n", e.at.Seconds(), text)
	}
	out := DecisionLine{At: e.at.Seconds(), Kind: d.Kind.String(), Reason: d.Reason.String(), Query: d.Query,
		Late: d.Late, Instance: int32(d.Instance), Batch: uint64(d.Batch),
		App: e.app, Variant: variant, Items: d.Items, Expected: float64(d.Expected) / 1e6,
		Queue: float64(d.Queue) / 1e6}
	switch d.Kind {
	case engine.EndQuery:
		out.Outcome = d.Outcome.String()
	case engine.KeepPlan:
		out.Error = d.Failure.Err
	}
	for _, p := range d.Tasks {
		out.Queries = append(out.Queries, p.Query)
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil
	}
	return append(b, '\n')
}

// wantsJSON reports whether a client accepts JSON.
func wantsJSON(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "application/json")
}

// Decisions returns a handler that writes the latest decisions with their reasons, one on each line, as text or as JSON
// for clients that accept it. ?limit=N is the most decisions, default 200. ?follow=1 continues with further decisions
// until the client goes away.
func (l *Log) Decisions() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := 200
		if v := r.URL.Query().Get("limit"); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				http.Error(w, "limit: want a whole number, at least 0", http.StatusBadRequest)
				return
			}
			limit = n
		}
		asJSON := wantsJSON(r)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if asJSON {
			w.Header().Set("Content-Type", "application/x-ndjson")
		}
		var f *follower
		if r.URL.Query().Get("follow") == "1" {
			f = &follower{lines: make(chan entry, followerBuffer)}
			defer l.unfollow(f)
		}
		latest, ok := l.follow(limit, f)
		if !ok {
			http.Error(w, "too many clients follow already", http.StatusServiceUnavailable)
			return
		}
		var b bytes.Buffer
		for k := range latest {
			b.Write(latest[k].line(asJSON))
		}
		if _, err := w.Write(b.Bytes()); err != nil || f == nil {
			return
		}
		l.stream(w, r, f, asJSON)
	})
}

// stream writes further decisions until the client goes away.
func (l *Log) stream(w http.ResponseWriter, r *http.Request, f *follower, asJSON bool) {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // the client sends nothing while it follows
	for {
		_ = c.SetWriteDeadline(time.Now().Add(30 * time.Second))
		if c.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case e := <-f.lines:
			if n := l.takeLost(f); n > 0 {
				line := fmt.Sprintf("# %d decisions were lost: this client reads too slowly\n", n)
				if asJSON {
					line = fmt.Sprintf("{\"lost\":%d}\n", n)
				}
				if _, err := w.Write([]byte(line)); err != nil {
					return
				}
			}
			if _, err := w.Write(e.line(asJSON)); err != nil {
				return
			}
		}
	}
}
