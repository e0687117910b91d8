// Package listen bounds what connections may do to a server: how many there are, how slowly they read, frames of HTTP/2
// that do no work, and who may connect over TLS.
package listen

import (
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/internal/api/access"
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
	// silentFor is how long a connection of HTTP may ask for nothing while others want its place: with many of them,
	// one host would keep all others from the places of its address.
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
	// Tenants are the weights by which tenants share the connections (see access.Room), and the Calls at once on each
	// of them; none for no tenants. Set both before Accept.
	Tenants []float64
	Calls   int

	name               string
	limit, each        int
	write              time.Duration
	mu                 sync.Mutex
	all                *access.Room            // of the connections within the limits
	byAddress          map[string]*access.Room // of those of each address
	conns              map[*Conn]struct{}      // within the limits
	reserve            int
	reservedBy         map[string]int
	accepted           uint64
	refused, closedFor map[string]uint64
}

// NewGuard returns a listener of at most limit connections, of which an address has at most each. A client must read a
// piece of an answer within write. name is the listener's in [Count].
func NewGuard(name string, l net.Listener, limit, each int, write time.Duration) *Guard {
	g := &Guard{
		Listener: l, name: name, limit: limit, each: each, write: write, byAddress: make(map[string]*access.Room),
		conns: make(map[*Conn]struct{}), reservedBy: make(map[string]int), refused: make(map[string]uint64),
		closedFor: make(map[string]uint64),
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
func (g *Guard) silent(address, why string) (oldest *Conn) {
	since := time.Since(begun) - silentFor
	for c := range g.conns {
		if why != tooMany && c.address != address {
			continue
		}
		if at, silent := c.silentSince(); silent && at <= since {
			oldest, since = c, at
		}
	}
	return oldest
}

// admit returns a connection within the limits, or nil, and one to close for it.
func (g *Guard) admit(c net.Conn) (own, displaced *Conn) {
	address := addressOf(c)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil {
		g.all = access.NewRoom(int64(g.limit), g.Tenants)
	}
	of := g.byAddress[address]
	if of == nil {
		of = access.NewRoom(int64(g.each), g.Tenants)
	}
	own = newConn(c, g, address, of)
	why := ""
	switch {
	case of.Full():
		why = tooManyAddress
	case g.all.Full():
		why = tooMany
	}
	if why != "" {
		displaced = g.silent(address, why)
		delete(g.conns, displaced)
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
		g.all.Add(1)
		of.Add(1)
		g.byAddress[address] = of
		g.conns[own] = struct{}{}
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

func decrement(m map[string]int, key string) {
	if m[key]--; m[key] == 0 {
		delete(m, key)
	}
}
