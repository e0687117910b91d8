package front

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/sluice-serving/sluice/operator/dispatcher/cells"
)

const (
	dialTimeout = 2 * time.Second
	// silent is how long a pod may leave what it was sent without a sign of having received it.
	silent = 5 * time.Second
	// connectionsEach is how many connections to a pod there are; they are kept while they are idle. Queries beyond
	// wait for one: a pod takes so many of one address (limits.Connections).
	connectionsEach = 256
)

// newTransport returns a pool of connections to pods. One whose pod has gone ends within some seconds, also where
// nobody closes it. dial connects, where it is not nil; encrypt encrypts a connection that is asked for by https.
func newTransport(dial func(ctx context.Context, address string) (net.Conn, error),
	encrypt func(ctx context.Context, c net.Conn, address string) (net.Conn, error)) *http.Transport {
	d := &net.Dialer{Timeout: dialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 3},
		Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			if outer := c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silent/time.Millisecond))
			}); outer != nil {
				return outer
			}
			return err
		}}
	connect := d.DialContext
	if dial != nil {
		connect = func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, address) }
	}
	dialTLS := func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := connect(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return encrypt(ctx, c, address)
	}
	return &http.Transport{DialContext: connect, DialTLSContext: dialTLS, MaxConnsPerHost: connectionsEach,
		MaxIdleConnsPerHost: connectionsEach, IdleConnTimeout: 90 * time.Second,
		DisableCompression: true, WriteBufferSize: 32 << 10, ReadBufferSize: 32 << 10,
		MaxResponseHeaderBytes: 1 << 20}
}

// notSent reports whether an error says that nothing of a request was sent: its connection did not come about.
func notSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// peers are the gRPC connections to pods, by address.
type peers struct {
	f     *Front
	mu    sync.Mutex
	conns map[string]*grpc.ClientConn
}

func newPeers(f *Front) *peers { return &peers{f: f, conns: make(map[string]*grpc.ClientConn)} }

// conn returns the connection to an address. It connects when it is used.
func (p *peers) conn(address string) (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.conns[address]; c != nil {
		return c, nil
	}
	most := int(p.f.c.Server.MaxRequest)
	c, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(p.f.credentials(address)),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{protoCodec()}),
			grpc.MaxCallRecvMsgSize(most), grpc.MaxCallSendMsgSize(most)),
		p.f.c.Server.Net.GRPC(), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(5*time.Minute),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second,
			},
			MinConnectTimeout: dialTimeout,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: silent}))
	if err != nil {
		return nil, err
	}
	p.conns[address] = c
	return c, nil
}

// only closes the connections to addresses that are not among these.
func (p *peers) only(addresses map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for a, c := range p.conns {
		if !addresses[a] {
			delete(p.conns, a)
			_ = c.Close()
		}
	}
}

func (p *peers) close() { p.only(nil) }

// reachedPath answers when this process last reached the API server, for other pods.
const reachedPath = "/fleet/reached"

// AskReached asks another pod how long ago it reached the API server.
func (f *Front) AskReached(ctx context.Context, of cells.Holder) (time.Duration, error) {
	if !f.reaches(of) {
		return 0, errOtherwise
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.scheme()+"://"+of.HTTP+reachedPath, nil)
	if err != nil {
		return 0, err
	}
	t := f.transportTo(of)
	defer t.CloseIdleConnections()
	answer, err := t.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	return parseReached(answer.Body)
}
