// Package memnet is a network in memory for whole-system tests: hosts that listen and connect, connections that are
// cut, dropped and healed, hosts that end or vanish.
package memnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluice-serving/sluice/internal/api/listen"
)

// Network connects addresses in memory. Between two of them it can be cut. It is safe for concurrent use.
type Network struct {
	mu        sync.Mutex
	ports     map[string]int
	listeners map[string]*listener // by HOST:PORT
	conns     map[*conn]bool
	cuts      map[[2]string]bool // by two hosts, the smaller first
	gone      map[string]bool    // hosts that do not even refuse
	dead      map[string]bool    // hosts that connect to nothing any more
	healed    chan struct{}
}

// silence is after how long a side gives up that hears nothing, as the sockets of a dispatcher do.
const silence = 5 * time.Second

// New returns a network without hosts.
func New() *Network {
	return &Network{ports: make(map[string]int), listeners: make(map[string]*listener), conns: make(map[*conn]bool),
		cuts: make(map[[2]string]bool), gone: make(map[string]bool), dead: make(map[string]bool),
		healed: make(chan struct{})}
}

// Of is the network as a host has it.
func (n *Network) Of(host string) listen.Net {
	return listen.Net{
		Listener: func(address string) (net.Listener, error) { return n.Listen(host, address) },
		Dialer:   func(ctx context.Context, address string) (net.Conn, error) { return n.Dial(ctx, host, address) },
	}
}

// Listen has a host take connections. Port 0 is a free one.
func (n *Network) Listen(host, address string) (net.Listener, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if port == "0" {
		n.ports[host]++
		port = fmt.Sprint(30000 + n.ports[host])
	}
	at := net.JoinHostPort(host, port)
	if n.listeners[at] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: syscall.EADDRINUSE}
	}
	l := &listener{n: n, at: at, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[at] = l
	return l, nil
}

func pair(a, b string) [2]string {
	if b < a {
		a, b = b, a
	}
	return [2]string{a, b}
}

// Dial connects a host to an address. A host may be one that nobody listens on.
func (n *Network) Dial(ctx context.Context, from, address string) (net.Conn, error) {
	failed := func(err error) (net.Conn, error) { return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return failed(err)
	}
	if strings.HasPrefix(host, "127.") {
		host = from
	}
	n.mu.Lock()
	l, silent := n.listeners[net.JoinHostPort(host, port)], n.cuts[pair(from, host)] || n.gone[host] || n.gone[from]
	dead := n.dead[from]
	n.ports[from]++
	own := &net.TCPAddr{IP: net.ParseIP(from), Port: 40000 + n.ports[from]%20000}
	n.mu.Unlock()
	if dead {
		return failed(syscall.ENETDOWN)
	}
	if silent {
		t := time.NewTimer(2 * time.Second)
		defer t.Stop()
		select {
		case <-t.C:
			return failed(syscall.ETIMEDOUT)
		case <-ctx.Done():
			return failed(ctx.Err())
		}
	}
	if l == nil {
		return failed(syscall.ECONNREFUSED)
	}
	a, b := net.Pipe()
	here := &conn{Conn: a, n: n, hosts: pair(from, host), local: own, remote: l.Addr(), closed: make(chan struct{})}
	there := &conn{Conn: b, n: n, hosts: here.hosts, local: l.Addr(), remote: own, closed: make(chan struct{})}
	n.mu.Lock()
	n.conns[here], n.conns[there] = true, true
	n.mu.Unlock()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		err = syscall.ECONNREFUSED
	case <-ctx.Done():
		err = ctx.Err()
	}
	_, _ = here.Close(), there.Close()
	return failed(err)
}

// Cut has nothing get through between two hosts until they are healed. Connections end after a while.
func (n *Network) Cut(a, b string) {
	n.mu.Lock()
	n.cuts[pair(a, b)] = true
	n.mu.Unlock()
	time.AfterFunc(silence, func() {
		n.mu.Lock()
		still := n.cuts[pair(a, b)]
		n.mu.Unlock()
		if still {
			n.drop(func(c *conn) bool { return c.hosts == pair(a, b) })
		}
	})
}

// Heal ends a cut.
func (n *Network) Heal(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.cuts, pair(a, b))
	close(n.healed)
	n.healed = make(chan struct{})
}

// IsCut reports whether nothing gets through between two hosts.
func (n *Network) IsCut(a, b string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cuts[pair(a, b)]
}

// Drop ends all connections of a host.
func (n *Network) Drop(host string) {
	n.drop(func(c *conn) bool { return c.hosts[0] == host || c.hosts[1] == host })
}

func (n *Network) drop(which func(*conn) bool) {
	n.mu.Lock()
	var list []*conn
	for c := range n.conns { // any order: they all end at one moment
		if which(c) {
			list = append(list, c)
		}
	}
	n.mu.Unlock()
	for _, c := range list {
		_ = c.Close()
	}
}

// Kill ends what a host listens on and its connections. One that vanishes does not even refuse: others wait in vain.
func (n *Network) Kill(host string, vanishes bool) {
	n.mu.Lock()
	n.gone[host], n.dead[host] = vanishes, true
	for at, l := range n.listeners {
		if h, _, _ := net.SplitHostPort(at); h == host {
			l.close()
			delete(n.listeners, at)
		}
	}
	n.mu.Unlock()
	if vanishes {
		time.AfterFunc(silence, func() { n.Drop(host) })
		return
	}
	n.Drop(host)
}

type listener struct {
	n      *Network
	at     string
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) close() { l.once.Do(func() { close(l.closed) }) }

func (l *listener) Close() error {
	l.close()
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.n.listeners[l.at] == l {
		delete(l.n.listeners, l.at)
	}
	return nil
}

func (l *listener) Addr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(l.at))
}

// conn is one side of a connection.
type conn struct {
	net.Conn
	n             *Network
	hosts         [2]string
	local, remote net.Addr
	once          sync.Once
	closed        chan struct{}
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// Write waits while the network is cut.
func (c *conn) Write(b []byte) (int, error) {
	for {
		c.n.mu.Lock()
		silent, healed := c.n.cuts[c.hosts] || c.n.gone[c.hosts[0]] || c.n.gone[c.hosts[1]], c.n.healed
		c.n.mu.Unlock()
		if !silent {
			n, err := c.Conn.Write(b)
			if errors.Is(err, net.ErrClosed) {
				err = syscall.EPIPE
			}
			return n, err
		}
		select {
		case <-healed:
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
}

func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.n.mu.Lock()
		delete(c.n.conns, c)
		c.n.mu.Unlock()
	})
	return c.Conn.Close()
}
