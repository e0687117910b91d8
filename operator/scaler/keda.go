package scaler

import (
	"context"
	"math"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/scaler/pb"
)

// Server answers KEDA.
type Server struct {
	pb.UnimplementedExternalScalerServer
	apps client.Reader

	mu      sync.Mutex
	readers map[chan struct{}]client.ObjectKey // of streams, by what wakes them
}

// NewServer answers from apps. Changed has to be called when an app has changed.
func NewServer(apps client.Reader) *Server {
	return &Server{apps: apps, readers: map[chan struct{}]client.ObjectKey{}}
}

// Changed wakes the streams of an app.
func (s *Server) Changed(app client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for wake, key := range s.readers {
		if key == app {
			select {
			case wake <- struct{}{}:
			default: // it is awake already
			}
		}
	}
}

func asked(ref *pb.ScaledObjectRef) (trigger, error) {
	t, err := triggerOf(ref.GetName(), ref.GetNamespace(), ref.GetScalerMetadata())
	if err != nil {
		return t, status.Error(codes.InvalidArgument, err.Error())
	}
	return t, nil
}

func (s *Server) rate(ctx context.Context, t *trigger) (float64, error) {
	v, err := rate(ctx, s.apps, t.app)
	switch {
	case apierrors.IsNotFound(err):
		return 0, status.Error(codes.NotFound, err.Error())
	case err != nil:
		return 0, status.Error(codes.Unavailable, err.Error())
	}
	return v, nil
}

// IsActive implements pb.ExternalScalerServer.
func (s *Server) IsActive(ctx context.Context, ref *pb.ScaledObjectRef) (*pb.IsActiveResponse, error) {
	t, err := asked(ref)
	if err != nil {
		return nil, err
	}
	v, err := s.rate(ctx, &t)
	return &pb.IsActiveResponse{Result: v > t.threshold}, err
}

// StreamIsActive implements pb.ExternalScalerServer: it answers at once, and whenever the answer has changed.
func (s *Server) StreamIsActive(ref *pb.ScaledObjectRef, stream pb.ExternalScaler_StreamIsActiveServer) error {
	t, err := asked(ref)
	if err != nil {
		return err
	}
	wake := make(chan struct{}, 1)
	s.mu.Lock()
	s.readers[wake] = t.app
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.readers, wake)
		s.mu.Unlock()
	}()
	for sent, before := false, false; ; {
		v, err := s.rate(stream.Context(), &t)
		if err != nil {
			return err
		}
		if active := v > t.threshold; !sent || active != before {
			if err := stream.Send(&pb.IsActiveResponse{Result: active}); err != nil {
				return err
			}
			sent, before = true, active
		}
		select {
		case <-wake:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// GetMetricSpec implements pb.ExternalScalerServer.
func (s *Server) GetMetricSpec(_ context.Context, ref *pb.ScaledObjectRef) (*pb.GetMetricSpecResponse, error) {
	t, err := asked(ref)
	if err != nil {
		return nil, err
	}
	return &pb.GetMetricSpecResponse{MetricSpecs: []*pb.MetricSpec{{
		MetricName: metricRate, TargetSize: whole(t.target), TargetSizeFloat: t.target}}}, nil
}

// GetMetrics implements pb.ExternalScalerServer.
func (s *Server) GetMetrics(ctx context.Context, in *pb.GetMetricsRequest) (*pb.GetMetricsResponse, error) {
	t, err := asked(in.GetScaledObjectRef())
	if err != nil {
		return nil, err
	}
	v, err := s.rate(ctx, &t)
	if err != nil {
		return nil, err
	}
	return &pb.GetMetricsResponse{MetricValues: []*pb.MetricValue{{
		MetricName: metricRate, MetricValue: whole(v), MetricValueFloat: v}}}, nil
}

// whole rounds up, for old versions of KEDA that read whole numbers alone: a target of 0 would be refused.
func whole(v float64) int64 { return int64(math.Ceil(min(v, math.MaxInt32))) }
