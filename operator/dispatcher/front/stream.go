package front

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

var streamDesc = &grpc.StreamDesc{StreamName: "ModelStreamInfer", ServerStreams: true, ClientStreams: true}

// stream answers ModelStreamInfer. Each request goes to the cell of its model, over a stream to it; answers come back
// as they come. Where a cell changes over to another run or pod, the next request opens a stream there, and the one
// before ends when it has answered.
type stream struct {
	f      *Front
	client grpc.ServerStream
	ctx    context.Context
	passed bool

	sending sync.Mutex // SendMsg to the client
	mu      sync.Mutex
	open    map[string]*branch // by cell and who serves it
	failed  chan error         // the first failure
	running sync.WaitGroup
}

// branch is a stream to a cell.
type branch struct {
	key    string
	to     target
	up     grpc.ClientStream
	send   sync.Mutex // SendMsg and CloseSend
	closed bool
	ended  chan struct{}
	forget func() // what was handed to the run
}

func (f *Front) stream(from context.Context, client grpc.ServerStream, passed bool) error {
	ctx, cancel := context.WithCancel(from)
	defer cancel()
	s := &stream{f: f, client: client, ctx: ctx, open: make(map[string]*branch), failed: make(chan error, 1),
		passed: passed}
	read := make(chan error, 1)
	go func() { read <- s.read() }()
	var err error
	select {
	case err = <-read:
		if err == nil { // the client has sent all
			s.closeAll()
			answered := make(chan struct{})
			go func() { s.running.Wait(); close(answered) }()
			select {
			case <-answered:
				select {
				case err = <-s.failed:
				default:
				}
			case err = <-s.failed:
			}
		}
	case err = <-s.failed:
	}
	cancel()
	if err != nil {
		s.f.metrics.failed("stream")
	}
	s.running.Wait()
	return err
}

// read takes the client's requests until it has sent all.
func (s *stream) read() error {
	for {
		var in frame
		if err := s.client.RecvMsg(&in); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		err := s.forward(&in)
		in.free()
		if err != nil {
			return err
		}
	}
}

// forward sends a request to its cell. One that its cell's stream did not take is sent over another.
func (s *stream) forward(in *frame) error {
	model := textField(in.data, fieldModel)
	avoid := ""
	for {
		t, err := s.f.resolve(s.ctx, model, s.passed, avoid)
		if err != nil {
			return s.f.status(s.client.Context(), "ModelStreamInfer", model, err)
		}
		b, err := s.branch(t)
		if err != nil {
			if t.run == nil && status.Code(err) == codes.Unavailable {
				avoid = t.holder.Identity
				continue
			}
			return err
		}
		b.send.Lock()
		if b.closed { // it changes over at this moment
			b.send.Unlock()
			continue
		}
		err = b.up.SendMsg(in)
		b.send.Unlock()
		if errors.Is(err, io.EOF) { // it has ended; the reader of its answers knows why
			select {
			case <-b.ended:
			case <-s.ctx.Done():
			}
			return status.Errorf(codes.Unavailable, "the dispatcher of model %q ended the stream: try again",
				cut(model))
		}
		return err
	}
}

// branch returns the stream to a target, and opens it if need be. It takes over the use of the target's run.
func (s *stream) branch(t target) (*branch, error) {
	key := t.holder.Identity
	if t.run != nil {
		key = t.run.Version + "/" + t.run.Since.String()
	}
	s.mu.Lock()
	b := s.open[key]
	s.mu.Unlock()
	if b != nil {
		t.done()
		return b, nil
	}
	var conn *grpc.ClientConn
	var ctx context.Context
	forget := func() {}
	options := []grpc.CallOption{grpc.ForceCodecV2(rawCodec{protoCodec()})}
	if t.run != nil {
		conn = t.run.Conn
		md, _ := metadata.FromIncomingContext(s.ctx)
		md = own(md)
		forget = s.f.handed.hand(md, certificateOf(s.ctx))
		ctx = metadata.NewOutgoingContext(s.ctx, md)
		s.f.metrics.local(t.cell, "grpc", s.passed)
	} else {
		var err error
		if conn, err = s.f.peers.conn(t.holder.GRPC); err != nil {
			return nil, err
		}
		ctx = passedOn(s.ctx)
		s.f.metrics.passed(t.cell, "grpc")
	}
	up, err := conn.NewStream(ctx, streamDesc, serviceName+"ModelStreamInfer", options...)
	if err != nil {
		t.done()
		forget()
		return nil, err
	}
	b = &branch{key: key, to: t, up: up, ended: make(chan struct{}), forget: forget}
	s.mu.Lock()
	s.open[key] = b
	s.mu.Unlock()
	s.running.Go(func() { s.answers(b) })
	s.running.Go(func() { s.retire(b) })
	return b, nil
}

// answers hands the answers of a cell to the client.
func (s *stream) answers(b *branch) {
	defer b.to.done()
	defer b.forget()
	defer close(b.ended)
	for {
		var out frame
		err := b.up.RecvMsg(&out)
		if err == nil {
			s.sending.Lock()
			err = s.client.SendMsg(&out)
			s.sending.Unlock()
			out.free()
		} else if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			select {
			case s.failed <- err:
			default:
			}
			break
		}
	}
	s.forget(b)
}

// retire ends what is sent over a branch whose run ends, or whose cell another pod holds by now. Its answers still
// come.
func (s *stream) retire(b *branch) {
	if b.to.run != nil {
		select {
		case <-b.to.run.Retired():
			s.leave(b)
		case <-b.ended:
		}
		return
	}
	for {
		v := s.f.table.view.Load()
		if v.places[b.to.cell].holder.Identity != b.to.holder.Identity {
			s.leave(b)
			return
		}
		select {
		case <-v.changed:
		case <-b.ended:
			return
		}
	}
}

// leave has later requests take another branch.
func (s *stream) leave(b *branch) {
	s.forget(b)
	b.closeSend()
}

func (s *stream) forget(b *branch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[b.key] == b {
		delete(s.open, b.key)
	}
}

func (b *branch) closeSend() {
	b.send.Lock()
	defer b.send.Unlock()
	if !b.closed {
		b.closed = true
		_ = b.up.CloseSend()
	}
}

func (s *stream) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.open {
		b.closeSend()
	}
}
