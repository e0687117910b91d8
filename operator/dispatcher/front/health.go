package front

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// fleetHealth answers grpc.health.v1 for the fleet ("") and for every app. Who asks once is told what is so now; who
// watches is told of changes within healthEvery.
type fleetHealth struct {
	*health.Server
	front *Front
}

// healthEvery is how often those who watch are told what has changed.
const healthEvery = 200 * time.Millisecond

// Check implements healthpb.HealthServer.
func (h fleetHealth) Check(_ context.Context, in *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	s := h.front.healthOf(h.front.table.view.Load(), in.Service)
	if s == healthpb.HealthCheckResponse_SERVICE_UNKNOWN {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	return &healthpb.HealthCheckResponse{Status: s}, nil
}

// healthOf is the status of an app, or of the fleet where name is empty.
func (f *Front) healthOf(v *view, name string) healthpb.HealthCheckResponse_ServingStatus {
	ready := f.ready()
	if name != "" {
		places := v.apps[name]
		if len(places) == 0 {
			return healthpb.HealthCheckResponse_SERVICE_UNKNOWN
		}
		ready = !f.leaving.Load() && pick(places).holder.Identity != ""
	}
	if ready {
		return healthpb.HealthCheckResponse_SERVING
	}
	return healthpb.HealthCheckResponse_NOT_SERVING
}

// watchHealth updates the statuses for those who watch.
func (f *Front) watchHealth(ctx context.Context) {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	was := map[string]bool{"": true}
	for {
		v := f.table.view.Load()
		for name := range v.apps {
			was[name] = true
		}
		for name := range was {
			f.health.SetServingStatus(name, f.healthOf(v, name))
			if len(v.apps[name]) == 0 && name != "" {
				delete(was, name)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
