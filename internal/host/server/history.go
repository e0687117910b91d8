package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/internal/measure/board"
)

const (
	// historyEvery is how often the latest seconds are written.
	historyEvery = time.Minute
	// historyBytes bounds the file.
	historyBytes = 256 << 20
	// historyPoints is the most points of an answer.
	historyPoints = 3000
)

// history writes what the board has seen to a file, and answers questions about it.
type history struct {
	file  *store.History
	board *board.Board
	start int64 // unix second of the board's time 0
	from  int64 // second that is written next, of the board's time
	log   func(string, error)
}

// openHistory opens the file that the configuration names; it returns nil where it names none.
func (s *Server) openHistory() (*history, error) {
	f := s.planned.File()
	if f.Telemetry.History == "" {
		return nil, nil
	}
	h, err := store.OpenHistory(f.Path(f.Telemetry.History), historyBytes)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	s.onRelease(h.Close)
	if lost := h.Lost(); lost != "" {
		s.log.Error("the history was damaged: it begins anew", "lost", lost)
	}
	return &history{
		file: h, board: s.board, start: time.Now().Add(-time.Duration(s.plane.Now())).Unix(),
		log: func(what string, err error) { s.log.Warn(what, "error", err) },
	}, nil
}

// keep writes the latest seconds every minute, and what is left when ctx ends.
func (h *history) keep(ctx context.Context) {
	tick := time.NewTicker(historyEvery)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-ctx.Done():
			done = true
		case <-tick.C:
		}
		if err := h.write(); err != nil {
			h.log("the history is not kept", err)
		}
	}
}

// write writes the seconds that were not written yet.
func (h *history) write() error {
	x := h.board.Seconds(h.from, int64(2*historyEvery/time.Second))
	from := h.from
	h.from = x.At
	if x.At <= from {
		return nil
	}
	for _, s := range x.Apps {
		for k := range s.At {
			s.At[k] += h.start
		}
	}
	return h.file.Add(h.start+from, x.Apps)
}

// since is when the history begins, in ms since 1970.
func (h *history) since() int64 { return h.file.Since() * 1000 }

// ServeHTTP answers ?app=NAME&from=S&to=S&step=S as the path series does, from the file. Times are in s since this
// server's start: those before it are below 0.
func (h *history) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	read := func(key string, or int64) (int64, error) {
		if q.Get(key) == "" {
			return or, nil
		}
		n, err := strconv.ParseInt(q.Get(key), 10, 64)
		if err != nil || n < -1<<40 || n > 1<<40 {
			return 0, fmt.Errorf("%s must be a whole number of seconds", key)
		}
		return n, nil
	}
	now := time.Now().Unix() - h.start
	from, err := read("from", now-int64(store.HistoryAge/time.Second))
	to, second := read("to", now)
	step, third := read("step", 1)
	for _, x := range []error{err, second, third} {
		if x != nil {
			refuseJSON(w, http.StatusBadRequest, x.Error())
			return
		}
	}
	from = max(from, now-2*int64(store.HistoryAge/time.Second))
	list, err := h.file.App(q.Get("app"), h.start+from, h.start+to)
	if err != nil {
		refuseJSON(w, http.StatusInternalServerError, err.Error())
		return
	}
	for _, s := range list {
		for k := range s.At {
			s.At[k] -= h.start
		}
	}
	step = max(1, step, (to-from)/historyPoints)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"schema": board.Schema, "app": q.Get("app"), "buckets": board.BucketStarts(),
		"series": board.Coarser(list, step),
	})
}
