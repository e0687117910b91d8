package listen

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/sluice-serving/sluice/internal/api/access"
)

// Conn is a connection that counts, and that ends when its client does not read. Nil is one that nobody bounds.
type Conn struct {
	net.Conn
	guard    *Guard
	address  string
	of       *access.Room // of its address
	reserved bool
	life     *time.Timer // of a reserved one
	once     sync.Once
	until    atomic.Int64 // the write deadline, in nanoseconds since begun; 0 when unknown
	readBy   atomic.Int64 // the read deadline, as until

	asking atomic.Int64 // requests of HTTP under way
	silent atomic.Int64 // since when there are none, in nanoseconds since begun
	mu     sync.Mutex
	calls  *access.Room // queries under way, of HTTP and gRPC; nil without tenants
	crowds bool         // the latest was refused for its tenant's part
}

func newConn(c net.Conn, g *Guard, address string, of *access.Room) *Conn {
	out := &Conn{Conn: c, guard: g, address: address, of: of}
	out.silent.Store(int64(time.Since(begun)))
	if len(g.Tenants) > 0 {
		out.calls = access.NewRoom(int64(g.Calls), g.Tenants)
	}
	return out
}

// begun is the start of the clock of write deadlines.
var begun = time.Now()

// allowWrite gives the client the write timeout to read a piece, and at most a quarter more: setting a deadline costs
// as much as all else about a small answer's way out, so that one serves many writes.
func (c *Conn) allowWrite() {
	now, timeout := time.Since(begun), c.guard.write
	if time.Duration(c.until.Load()) >= now+timeout {
		return
	}
	end := now + timeout + timeout/4
	c.until.Store(int64(end))
	_ = c.Conn.SetWriteDeadline(begun.Add(end))
}

// lateBy is how much later than asked for a read deadline may stand, so that it need not be set anew for each request.
const lateBy = time.Second

// SetReadDeadline implements net.Conn. Servers set a deadline some times for each request, each a little later than the
// one before: one that is in force and up to a second later will do.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if t.IsZero() || time.Until(t) < 2*lateBy { // an end to waiting, or to a wait that is short
		c.readBy.Store(0)
		return c.Conn.SetReadDeadline(t)
	}
	want := t.Sub(begun)
	if in := time.Duration(c.readBy.Load()); in >= want && in <= want+lateBy {
		return nil
	}
	c.readBy.Store(int64(want + lateBy))
	return c.Conn.SetReadDeadline(t.Add(lateBy))
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.until.Store(0)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	c.until.Store(0)
	c.readBy.Store(0)
	return c.Conn.SetDeadline(t)
}

// Write implements net.Conn. The client has the write timeout for every piece.
func (c *Conn) Write(b []byte) (written int, err error) {
	for {
		piece := b[:min(len(b), writePiece)]
		c.allowWrite()
		n, err := c.Conn.Write(piece)
		written += n
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				_ = c.closeFor(clientSlow)
			}
			return written, err
		}
		if b = b[n:]; len(b) == 0 {
			return written, nil
		}
	}
}

// Close implements net.Conn.
func (c *Conn) Close() error { return c.closeFor(ended) }

func (c *Conn) closeFor(why string) error {
	c.once.Do(func() {
		g := c.guard
		if g.Connected != nil {
			defer g.Connected(c.RemoteAddr().String(), false)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.closedFor[why]++
		delete(g.conns, c)
		if c.reserved {
			c.life.Stop()
			g.reserve--
			decrement(g.reservedBy, c.address)
			return
		}
		g.all.Add(-1)
		if c.of.Add(-1); c.of.Used() == 0 {
			delete(g.byAddress, c.address)
		}
	})
	return c.Conn.Close()
}

// silentSince returns since when nothing is asked on a connection. One whose client holds too many places counts as
// silent for ever once nothing is under way. What else happens on one of gRPC nobody counts.
func (c *Conn) silentSince() (since time.Duration, silent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.calls != nil && c.calls.Used() > 0 || c.asking.Load() > 0:
		return 0, false
	case c.crowds:
		return -time.Hour, true
	}
	return time.Duration(c.silent.Load()), c.guard.name != "grpc"
}

// asks notes that a request of HTTP begins (1) or ends (-1).
func (c *Conn) asks(more int64) {
	c.silent.Store(int64(time.Since(begun)))
	c.asking.Add(more)
}

// Shared reports whether tenants share the listener of the connection.
func (c *Conn) Shared() bool { return c != nil && c.calls != nil }

// Enter has a tenant's query be under way on the connection, until Leave is called. It returns false if the tenant
// holds more than its part of what few there are left of: calls on the connection, or connections with its queries.
func (c *Conn) Enter(tenant int) bool {
	if !c.Shared() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.Add(1)
	if c.crowds = !c.hold(tenant); c.crowds {
		c.calls.Add(-1)
	}
	return !c.crowds
}

func (c *Conn) hold(tenant int) bool {
	if !c.calls.Hold(tenant, 1) {
		return false
	}
	if c.reserved || c.calls.Held(tenant) > 1 {
		return true
	}
	if c.of.Hold(tenant, 1) {
		if c.guard.all.Hold(tenant, 1) {
			return true
		}
		c.of.Let(tenant, 1)
	}
	c.calls.Let(tenant, 1)
	return false
}

// Leave ends what Enter began.
func (c *Conn) Leave(tenant int) {
	if !c.Shared() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls.Give(tenant, 1); !c.reserved && c.calls.Held(tenant) == 0 {
		c.of.Let(tenant, 1)
		c.guard.all.Let(tenant, 1)
	}
}

// connKey marks a request's connection in its context.
type connKey struct{}

// WithConn is the ConnContext of HTTP servers.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = t.NetConn()
	}
	if own, ok := c.(*Conn); ok {
		return context.WithValue(ctx, connKey{}, own)
	}
	return ctx
}

// ConnOf returns the connection of a request of HTTP, or nil.
func ConnOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

// secured says how a call's connection is secured, and which one it is.
type secured struct {
	credentials.AuthInfo
	conn *Conn
}

// ConnOfCall returns the connection of a call of gRPC, or nil.
func ConnOfCall(ctx context.Context) *Conn {
	if p, ok := peer.FromContext(ctx); ok {
		if s, ok := p.AuthInfo.(secured); ok {
			return s.conn
		}
	}
	return nil
}

// Security returns how the connection of a call is secured, as gRPC's credentials say it.
func Security(of credentials.AuthInfo) credentials.AuthInfo {
	if s, ok := of.(secured); ok {
		return s.AuthInfo
	}
	return of
}

// Reserved lets a reserved connection serve one request, which refuse answers unless it only reads.
func Reserved(h http.Handler, refuse http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own, ok := r.Context().Value(connKey{}).(*Conn)
		if ok {
			own.asks(1)
			defer own.asks(-1)
		}
		if !ok || !own.reserved {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			refuse(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}
