package server

import (
	"context"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// healthEvery is how often the status of grpc.health.v1 follows the service's.
const healthEvery = 200 * time.Millisecond

// watchHealth updates the statuses of grpc.health.v1, of the server ("") and of every model, until ctx ends.
func (s *Server) watchHealth(ctx context.Context) {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	seen := make(healthSeen)
	for {
		s.updateHealth(seen)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// healthSeen is what watchers of grpc.health.v1 were told, by the name of the service.
type healthSeen map[string]*toldHealth

type toldHealth struct{ ready, there bool }

// updateHealth tells watchers what has changed.
func (s *Server) updateHealth(seen healthSeen) {
	tell := func(name string, ready bool) {
		was := seen[name]
		if was == nil {
			was = &toldHealth{ready: !ready}
			seen[name] = was
		}
		if was.there = true; was.ready == ready {
			return
		}
		was.ready = ready
		status := healthpb.HealthCheckResponse_NOT_SERVING
		if ready {
			status = healthpb.HealthCheckResponse_SERVING
		}
		s.health.SetServingStatus(name, status)
	}
	tell("", s.Ready())
	for _, m := range s.service.Models() {
		tell(m.Name, s.modelReady(m, ""))
	}
	for name, was := range seen {
		if !was.there {
			s.health.SetServingStatus(name, healthpb.HealthCheckResponse_SERVICE_UNKNOWN)
			delete(seen, name)
		}
		was.there = false
	}
}
