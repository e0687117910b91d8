package server

import (
	"context"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// Held is what requests hold of the memory budget, in bytes.
func (s *Server) Held() int64 { return s.memory.Used() }

// HealthUpdates returns what brings the statuses of grpc.health.v1 up to date.
func (s *Server) HealthUpdates() func() {
	seen := make(healthSeen)
	return func() { s.updateHealth(seen) }
}

// Health is the status of a service in grpc.health.v1.
func (s *Server) Health(name string) string {
	r, err := s.health.Check(context.Background(), &healthpb.HealthCheckRequest{Service: name})
	if err != nil {
		return err.Error()
	}
	return r.Status.String()
}
