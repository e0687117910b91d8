package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/internal/api/dashboard"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/questions"
	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Bounds of questions that a page asks.
const (
	whatIfBytes   = 64 << 10
	whatIfTimeout = time.Minute
	whatIfSpan    = 2 * time.Minute
	longestWhatIf = 10 * time.Minute
)

// WhatIfAnswerer answers a question beside a server that serves: a process of its own with a low priority, for
// instance.
type WhatIfAnswerer func(context.Context, *questions.WhatIf) (*questions.WhatIfAnswer, error)

// whatIf answers questions of the page, one at a time. The entry of the admin address asks who asks, as for a change:
// an answer costs seconds of a core.
func (s *Server) whatIf(answerer WhatIfAnswerer) http.Handler {
	if answerer == nil {
		answerer = answerAtLowPriority
	}
	var one sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			refuseJSON(w, http.StatusMethodNotAllowed, "use POST here")
			return
		}
		var ask struct {
			SpanS  float64          `json:"span_s"`
			Change questions.Change `json:"change"`
			Plan   int              `json:"plan"` // asks what keeps the demand of this plan from being carried
		}
		d := json.NewDecoder(io.LimitReader(r.Body, whatIfBytes))
		d.DisallowUnknownFields()
		if err := d.Decode(&ask); err != nil {
			refuseJSON(w, http.StatusBadRequest, "the question is not the JSON that is wanted: "+err.Error())
			return
		}
		if !one.TryLock() {
			w.Header().Set("Retry-After", "5")
			refuseJSON(w, http.StatusTooManyRequests, "another question is being answered: ask again in some seconds")
			return
		}
		defer one.Unlock()
		limit, done := context.WithTimeout(r.Context(), whatIfTimeout)
		defer done()
		span := whatIfSpan
		if ask.SpanS > 0 {
			span = min(time.Duration(ask.SpanS*float64(time.Second)), longestWhatIf)
		}
		q, was := s.question(span)
		q.Change = ask.Change
		if ask.Plan != 0 {
			if q.Demand = s.board.Demand(ask.Plan); q.Demand == nil {
				refuseJSON(w, http.StatusNotFound, "this plan is not among the latest ones, or had no demand: "+
					dashboard.Prefix+"plans lists them")
				return
			}
			q.Arrivals, q.Span, was = nil, 0, nil
		}
		begun := time.Now()
		answer, err := answerer(limit, q)
		if err != nil {
			if whatIfStatus(err) == http.StatusInternalServerError {
				s.trouble(fmt.Errorf("a question of the page: %w", err))
			}
			refuseJSON(w, whatIfStatus(err), err.Error())
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(struct {
			*questions.WhatIfAnswer
			Was   map[string]board.Window `json:"was,omitempty"`
			TookS float64                 `json:"took_s"`
		}{answer, was, time.Since(begun).Seconds()})
	})
}

func whatIfStatus(err error) int {
	switch fault.Of(err) {
	case fault.Usage, fault.Config:
		return http.StatusBadRequest
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

func refuseJSON(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text})
}

// question takes the arrivals of the latest span, and what was seen of them.
func (s *Server) question(span time.Duration) (*questions.WhatIf, map[string]board.Window) {
	p := s.planned
	now := s.plane.Now()
	from := max(0, now.Add(-span))
	arrivals := s.board.Arrivals(from)
	if len(arrivals) > 0 && len(arrivals) >= keptArrivals {
		from = arrivals[0].At // older ones are gone
	}
	spec := s.service.spec.Load()
	arrivals = slices.DeleteFunc(arrivals, func(a workload.Arrival) bool {
		return int(a.App) < len(spec.Apps) && spec.Apps[a.App].Generation > 0 // not an app of the file any more
	})
	for k := range arrivals {
		arrivals[k].At -= from
	}
	q := &questions.WhatIf{
		File: p.Name(), Measurements: p.Measurements(), Arrivals: arrivals, Span: now.Sub(from),
	}
	if p.Named() != "" {
		q.System = p.Named()
	}
	if len(arrivals) == 0 {
		q.Span = 0
	}
	return q, s.board.Past(serving.Time(q.Span))
}
