// Package listen bounds what connections may do to a server: how many there are, how slowly they read, frames of HTTP/2
// that do no work, and who may connect over TLS.
package listen

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Connections beyond the limits are closed at once, so that none waits in vain. Some beyond the limit of all are kept
// for health and administration: otherwise one host with many silent connections keeps probes from being answered, and
// the server is taken for dead.
const (
	// reserved is how many connections a listener accepts beyond its limit, and reservedEach those of one address. They
	// live for reservedLife at most, and over HTTP answer one request that is no inference.
	reserved     = 32
	reservedEach = 4
	reservedLife = 10 * time.Second
	// silentFor is how long a connection may take to its first request while others want its place: with many that ask
	// for nothing, one host would keep all others from the places of its address.
	silentFor = time.Second
	// writePiece is what a client must read within the write timeout, in bytes.
	writePiece = 64 << 10
)

// The reasons why a connection is refused or closed, in metrics.
const (
	tooMany        = "connections"
	tooManyAddress = "connections_per_address"
	reserveOver    = "reserve"
	clientSlow     = "write_timeout"
	flooded        = "flood"  // by frames that do no work
	wasSilent      = "silent" // it had asked for nothing when another wanted its place
	ended          = "ended"
)

// Count is how many connections of a listener (http, grpc, admin) there were to which something happened.
type Count struct {
	Listener string
	Event    string // accepted, refused or closed
	Reason   string // the limit that refused or closed it; "" or "ended" otherwise
	Count    uint64
}

// Guard is a listener that bounds what connections may do.
type Guard struct {
	net.Listener
	// Connected is told when connections begin and end. Nil is told nothing. Set it before Accept.
	Connected func(remote string, begins bool)

	name               string
	limit, each        int
	write              time.Duration
	mu                 sync.Mutex
	open, reserve      int
	byAddress          map[string]int // of all open ones
	reservedBy         map[string]int
	asksNothing        map[*guardedConn]struct{} // of HTTP: those that have not made a request; nil for gRPC
	accepted           uint64
	refused, closedFor map[string]uint64
}

// NewGuard returns a listener of at most limit connections, of which an address has at most each. A client must read a
// piece of an answer within write. name is the listener's in [Count].
func NewGuard(name string, l net.Listener, limit, each int, write time.Duration) *Guard {
	g := &Guard{
		Listener: l, name: name, limit: limit, each: each, write: write, byAddress: make(map[string]int),
		reservedBy: make(map[string]int), refused: make(map[string]uint64), closedFor: make(map[string]uint64),
	}
	if name != "grpc" {
		g.asksNothing = make(map[*guardedConn]struct{})
	}
	return g
}

// Accept implements net.Listener. It closes what is beyond the limits.
func (g *Guard) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		own, displaced := g.admit(c)
		if displaced != nil {
			_ = displaced.closeFor(wasSilent)
		}
		if own != nil {
			if g.Connected != nil {
				g.Connected(c.RemoteAddr().String(), true)
			}
			return own, nil
		}
		_ = c.Close()
	}
}

// addressOf is who is at the other end, without the port.
func addressOf(c net.Conn) string {
	remote := c.RemoteAddr().String()
	if address, _, err := net.SplitHostPort(remote); err == nil {
		return address
	}
	return remote
}

// silent returns the oldest connection that gives a place to one of an address, or nil.
func (g *Guard) silent(address, why string) (oldest *guardedConn) {
	for c := range g.asksNothing {
		if (why == tooMany || c.address == address) && time.Since(c.since) >= silentFor &&
			(oldest == nil || c.since.Before(oldest.since)) {
			oldest = c
		}
	}
	return oldest
}

// admit returns a connection within the limits, or nil, and one to close for it.
func (g *Guard) admit(c net.Conn) (own, displaced *guardedConn) {
	address := addressOf(c)
	g.mu.Lock()
	defer g.mu.Unlock()
	own = &guardedConn{Conn: c, guard: g, address: address, since: time.Now()}
	why := ""
	switch {
	case g.byAddress[address] >= g.each:
		why = tooManyAddress
	case g.open >= g.limit:
		why = tooMany
	}
	if why != "" {
		displaced = g.silent(address, why)
		delete(g.asksNothing, displaced)
	}
	if why != "" && displaced == nil {
		if g.reserve >= reserved || g.reservedBy[address] >= reservedEach {
			g.refused[why]++
			return nil, nil
		}
		own.reserved = true
		g.reserve++
		g.reservedBy[address]++
		own.life = time.AfterFunc(reservedLife, func() { _ = own.closeFor(reserveOver) })
	} else {
		g.open++
		g.byAddress[address]++
		if g.asksNothing != nil {
			g.asksNothing[own] = struct{}{}
		}
	}
	g.accepted++
	return own, displaced
}

// Counts returns what happened so far.
func (g *Guard) Counts() (out []Count) {
	g.mu.Lock()
	defer g.mu.Unlock()
	out = append(out, Count{g.name, "accepted", "", g.accepted})
	for _, why := range []string{tooMany, tooManyAddress} {
		out = append(out, Count{g.name, "refused", why, g.refused[why]})
	}
	for _, why := range slices.Sorted(maps.Keys(g.closedFor)) {
		out = append(out, Count{g.name, "closed", why, g.closedFor[why]})
	}
	return out
}

// guardedConn is a connection that counts, and that ends when its client does not read.
type guardedConn struct {
	net.Conn
	guard    *Guard
	address  string
	reserved bool
	life     *time.Timer // of a reserved one
	since    time.Time
	asked    atomic.Bool // it has made a request
	once     sync.Once
	until    atomic.Int64 // the write deadline, in nanoseconds since begun; 0 when unknown
	readBy   atomic.Int64 // the read deadline, as until
}

// begun is the start of the clock of write deadlines.
var begun = time.Now()

// allowWrite gives the client the write timeout to read a piece, and at most a quarter more: setting a deadline costs
// as much as all else about a small answer's way out, so that one serves many writes.
func (c *guardedConn) allowWrite() {
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
func (c *guardedConn) SetReadDeadline(t time.Time) error {
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
func (c *guardedConn) SetWriteDeadline(t time.Time) error {
	c.until.Store(0)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *guardedConn) SetDeadline(t time.Time) error {
	c.until.Store(0)
	c.readBy.Store(0)
	return c.Conn.SetDeadline(t)
}

// Write implements net.Conn. The client has the write timeout for every piece.
func (c *guardedConn) Write(b []byte) (written int, err error) {
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
func (c *guardedConn) Close() error { return c.closeFor(ended) }

func (c *guardedConn) closeFor(why string) error {
	c.once.Do(func() {
		g := c.guard
		if g.Connected != nil {
			defer g.Connected(c.RemoteAddr().String(), false)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.closedFor[why]++
		delete(g.asksNothing, c)
		if c.reserved {
			c.life.Stop()
			g.reserve--
			decrement(g.reservedBy, c.address)
			return
		}
		g.open--
		decrement(g.byAddress, c.address)
	})
	return c.Conn.Close()
}

func decrement(m map[string]int, key string) {
	if m[key]--; m[key] == 0 {
		delete(m, key)
	}
}

// connKey marks a request's connection in its context.
type connKey struct{}

// WithConn is the ConnContext of HTTP servers.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = t.NetConn()
	}
	if own, ok := c.(*guardedConn); ok {
		return context.WithValue(ctx, connKey{}, own)
	}
	return ctx
}

// asks notes that a connection has made a request.
func (c *guardedConn) asks() {
	if !c.asked.Load() && !c.asked.Swap(true) {
		c.guard.mu.Lock()
		delete(c.guard.asksNothing, c)
		c.guard.mu.Unlock()
	}
}

// Reserved lets a reserved connection serve one request, which refuse answers unless it only reads.
func Reserved(h http.Handler, refuse http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own, ok := r.Context().Value(connKey{}).(*guardedConn)
		if ok {
			own.asks()
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
