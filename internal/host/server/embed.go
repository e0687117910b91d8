package server

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/mem"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/serving"
)

// A program that runs several configurations behind a front of its own hands requests to a server without a socket
// between them, and reads how its apps do.

// Handler answers the protocol over HTTP, as HTTPAddr does. It must not be called once Serve has returned.
func (s *Server) Handler() http.Handler { return s.front.Handler() }

// AdminHandler answers what AdminAddr does: metrics, decisions, the dashboard.
func (s *Server) AdminHandler() http.Handler { return s.front.AdminHandler() }

// Call answers a unary call of the protocol, such as ModelInfer, whose message is still encoded. See server.Call.
func (s *Server) Call(ctx context.Context, method string, in mem.BufferSlice) (mem.BufferSlice, error) {
	return s.front.Call(ctx, method, in)
}

// Metrics are the series of AdminAddr's /metrics.
func (s *Server) Metrics() prometheus.Gatherer { return s.telemetry.Gatherer() }

// ReadyApps tells of each app whether it has a ready instance at every stage.
func (s *Server) ReadyApps() map[string]bool {
	out := make(map[string]bool)
	for _, m := range s.service.Models() {
		out[m.Name] = s.service.ModelReady(m, "")
	}
	return out
}

// BrokenVariants are the variants of each app, by name, whose loads failed of late, several times in a row. Plans leave
// them out until they are tried again.
func (s *Server) BrokenVariants() map[string][]string {
	out := make(map[string][]string)
	s.plane.Inspect(func(e *engine.Engine) {
		spec := e.Spec()
		for a := range spec.Apps {
			for _, st := range spec.Apps[a].Stages {
				for _, v := range spec.Stages[st].Variants {
					if e.Broken(v) {
						out[spec.Apps[a].Name] = append(out[spec.Apps[a].Name], spec.Variants[v].Name)
					}
				}
			}
		}
	})
	return out
}

// LoadError says why the latest load of a variant, by name, that failed did; "" where none has.
func (s *Server) LoadError(variant string) string {
	why, _ := s.loadErrors.Load(variant)
	text, _ := why.(string)
	return text
}

// Detach has supplied machines and their models stay as they are from now on, whatever the plan says: another server
// takes them over, and this one finishes what it has accepted.
func (s *Server) Detach() {
	for _, x := range s.run.Supplied {
		if x != nil {
			x.Detach()
		}
	}
}

// Overview is how the apps do, and the plan in force.
func (s *Server) Overview() *board.Overview {
	s.board.Advance(s.plane.Now())
	return s.board.Overview()
}

// Past is what happened to the queries of each app in the latest minute, by name.
func (s *Server) Past() map[string]board.Window {
	s.board.Advance(s.plane.Now())
	return s.board.Past(serving.Time(time.Minute))
}

// MadePlan is a plan by its number in Overview, and what it changed; false when it is not kept any more.
func (s *Server) MadePlan(number int) (*board.PlanView, bool) { return s.board.Plan(number) }

// Machines are the workers and what they hold.
func (s *Server) Machines() *board.Machines { return s.board.Machines(new(board.Look)) }
