package front

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluice-serving/sluice/operator/dispatcher/cells"
)

// A front with TLS passes queries on over TLS as well, and to replicas with TLS alone. Replicas know one another then
// (peertls), so that one may say whose query it passes on.

// secure reports whether the front has TLS.
func (f *Front) secure() bool { return f.c.Replica != nil }

// scheme is that of the fleet's addresses.
func (f *Front) scheme() string {
	if f.secure() {
		return "https"
	}
	return "http"
}

// reaches reports whether queries may be passed on to a replica: it has TLS, as this one does, or neither has. They
// differ only while a fleet gets TLS or loses it.
func (f *Front) reaches(h cells.Holder) bool { return (h.Key != "") == f.secure() }

// errOtherwise is the error of a replica that is not reached.
var errOtherwise = errors.New("of it and this dispatcher only one serves TLS: the fleet is about to change that")

// credentials are those of gRPC connections to an address.
func (f *Front) credentials(address string) credentials.TransportCredentials {
	if !f.secure() {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(f.c.Replica.Client(f.keyAt(address)))
}

// keyAt returns what looks up the key of the replica at an address.
func (f *Front) keyAt(address string) func() string {
	return func() string { return f.table.view.Load().keys[address] }
}

// connect encrypts a connection to a replica that the table has.
func (f *Front) connect(ctx context.Context, c net.Conn, address string) (net.Conn, error) {
	return f.encrypt(ctx, c, f.keyAt(address))
}

// encrypt encrypts a connection to the replica with a key. While that fails nothing was sent, as with a dial.
func (f *Front) encrypt(ctx context.Context, c net.Conn, key func() string) (net.Conn, error) {
	limit, done := context.WithTimeout(ctx, 2*dialTimeout)
	defer done()
	out := tls.Client(c, f.c.Replica.Client(key))
	if err := out.HandshakeContext(limit); err != nil {
		_ = c.Close()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: c.RemoteAddr(), Err: err}
	}
	return out, nil
}

// transportTo returns a pool of connections to one replica, which the table need not have.
func (f *Front) transportTo(h cells.Holder) *http.Transport {
	return newTransport(f.c.Server.Net.Dialer, func(ctx context.Context, c net.Conn, _ string) (net.Conn, error) {
		return f.encrypt(ctx, c, func() string { return h.Key })
	})
}
