package server

import (
	"context"
	"errors"

	"google.golang.org/grpc"
)

// DrainGRPC has a gRPC server take no more calls and answer those it has. Those that still run when limit ends are cut
// off, which is an error.
func DrainGRPC(limit context.Context, s *grpc.Server) error {
	stopped := make(chan struct{})
	go func() { s.GracefulStop(); close(stopped) }()
	select {
	case <-stopped:
		return nil
	case <-limit.Done():
		s.Stop()
		<-stopped
		return errors.New("gRPC calls were still running after the drain timeout")
	}
}
