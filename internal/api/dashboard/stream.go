package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/serving"
)

const (
	// every is the time between two events of one kind.
	every = time.Second
	// mostReaders is the most clients that read the stream at once. Each costs a copy of every event's slice header.
	mostReaders = 32
	// behind is how many events a reader may be behind before it loses some.
	behind = 16
	// writeLimit is the time in which a reader must take an event.
	writeLimit = 10 * time.Second
)

// Topics of the stream. A reader names those it wants (?topics=overview,machines); without any it gets the overview.
const (
	overviewTopic = "overview"
	secondsTopic  = "seconds"
	machinesTopic = "machines"
)

// hub hands events to readers.
type hub struct {
	mu      sync.Mutex
	readers map[*reader]bool
	lost    uint64 // events, of all readers
}

// reader is a client of the stream.
type reader struct {
	topics map[string]bool
	events chan []byte
	lost   bool // an event did not fit: the reader must begin anew
}

// send hands an event to the readers of a topic, or to all where it is "". It never waits.
func (h *hub) send(topic string, event []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.readers {
		if topic != "" && !r.topics[topic] {
			continue
		}
		select {
		case r.events <- event:
		default:
			r.lost = true
			h.lost++
		}
	}
}

// wanted reports whether somebody reads a topic.
func (h *hub) wanted(topic string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.readers {
		if r.topics[topic] {
			return true
		}
	}
	return false
}

func (h *hub) join(r *reader) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.readers) >= mostReaders {
		return false
	}
	h.readers[r] = true
	return true
}

func (h *hub) leave(r *reader) {
	h.mu.Lock()
	delete(h.readers, r)
	h.mu.Unlock()
}

// takeLost reports whether a reader has lost events since it was asked, and empties what is left for it.
func (h *hub) takeLost(r *reader) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	lost := r.lost
	for r.lost {
		select {
		case <-r.events:
		default:
			r.lost = false
		}
	}
	return lost
}

// Lost returns how many events did not reach a reader because it was too slow, and how many readers there are.
func (d *Dashboard) Lost() (events uint64, readers int) {
	d.hub.mu.Lock()
	defer d.hub.mu.Unlock()
	return d.hub.lost, len(d.hub.readers)
}

// event writes an event of server-sent events.
func event(name string, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var b bytes.Buffer
	b.WriteString("event: " + name + "\ndata: ")
	b.Write(data)
	b.WriteString("\n\n")
	return b.Bytes()
}

// Run makes the events of the stream, until ctx ends. Nothing is made that nobody reads, and nothing for a run that is
// over.
func (d *Dashboard) Run(ctx context.Context) {
	if d.c.Clock == nil {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	var look board.Look
	looked := false
	plans, from := d.c.Board.PlansMade(), int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		d.advance()
		b := d.c.Board
		b.Mark()
		if d.hub.wanted(overviewTopic) {
			d.hub.send(overviewTopic, event("overview", b.Overview()))
		}
		if d.hub.wanted(secondsTopic) {
			s := b.Seconds(from, mostSeconds)
			from = s.At
			d.hub.send(secondsTopic, event("seconds", s))
		} else {
			from = int64(d.now().Seconds())
		}
		switch wanted := d.hub.wanted(machinesTopic); {
		case !wanted:
			looked = false
		default:
			if !looked {
				look = b.Begin()
			}
			d.hub.send(machinesTopic, event("machines", b.Changed(&look, !looked)))
			looked = true
		}
		if n := b.PlansMade(); n != plans {
			plans = n
			d.hub.send("", event("plans", map[string]int{"made": n}))
		}
	}
}

// mostSeconds is the most seconds of an event.
const mostSeconds = 5

func (d *Dashboard) now() serving.Time {
	if d.c.Clock == nil {
		return 0
	}
	return d.c.Clock()
}

// stream answers GET stream. The first event says what is shown; "again" tells a reader that it has lost events and has
// to ask anew for what it shows.
func (d *Dashboard) stream(w http.ResponseWriter, r *http.Request) {
	x := &reader{topics: make(map[string]bool), events: make(chan []byte, behind)}
	for t := range strings.SplitSeq(r.URL.Query().Get("topics"), ",") {
		x.topics[strings.TrimSpace(t)] = true
	}
	if len(x.topics) == 1 && x.topics[""] {
		x.topics[overviewTopic] = true
	}
	if !d.hub.join(x) {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, "too many pages are open: close some")
		return
	}
	defer d.hub.leave(x)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not collect events
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // the client sends nothing while it reads
	next := event("info", d.c.Info)
	for {
		_ = c.SetWriteDeadline(time.Now().Add(writeLimit))
		if _, err := w.Write(next); err != nil || c.Flush() != nil {
			return
		}
		if d.hub.takeLost(x) {
			next = event("again", map[string]bool{"lost": true})
			continue
		}
		select {
		case <-r.Context().Done():
			return
		case next = <-x.events:
		}
	}
}
