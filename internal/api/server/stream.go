package server

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// boundedStream receives requests within their bounds. One beyond them ends the stream. Every message restarts the
// stream's idle timer.
type boundedStream struct {
	grpc.ServerStream
	alive func()
}

// SendMsg implements grpc.ServerStream.
func (s boundedStream) SendMsg(m any) error {
	s.alive()
	return s.ServerStream.SendMsg(m)
}

// RecvMsg implements grpc.ServerStream.
func (s boundedStream) RecvMsg(m any) error {
	defer s.alive()
	r, ok := m.(*pb.ModelInferRequest)
	if !ok {
		return s.ServerStream.RecvMsg(m)
	}
	in := checkedRequest{ModelInferRequest: r}
	if err := s.ServerStream.RecvMsg(&in); err != nil {
		return err
	}
	if in.refused != nil {
		return wireStatus(in.refused)
	}
	return nil
}

// watchedStream serves a stream until its handler returns, or until it has been without a message for
// Config.StreamIdle. Then the handler's calls on the stream fail.
func watchedStream(c *Config, method string, s grpc.ServerStream, handle func(grpc.ServerStream) error) error {
	idle := time.NewTimer(c.StreamIdle)
	defer idle.Stop()
	ended := make(chan error, 1)
	go func() {
		var err error
		defer func() { ended <- err }()
		defer recoverCall(c, method, &err)
		err = handle(boundedStream{s, func() { idle.Reset(c.StreamIdle) }})
	}()
	select {
	case err := <-ended:
		return err
	case <-idle.C:
		return status.Errorf(codes.Aborted, "no message for %v (server.limits.stream_idle)", c.StreamIdle)
	}
}
