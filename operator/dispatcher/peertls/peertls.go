// Package peertls has the replicas of a fleet know one another over TLS. Each makes a certificate of its own at its
// start, whose key never leaves its memory, and publishes the certificate's digest in its Lease. So a replica is who
// may write the fleet's Leases, by which the others find it anyway; there is no secret to make, share or rotate.
//
// Replicas call one another at the addresses of clients, and ask there for ServerName. A connection for that name is
// accepted from a replica alone, so that what comes over it may say on whose behalf. Any other one is a client's.
package peertls

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/operator/internal/selfsigned"
)

// ServerName is what a replica asks for when it calls another. It is no name of any host.
const ServerName = "replica.sluice.internal"

// patience is how long a replica that is not known yet is waited for: its Lease may be a moment behind it.
const patience = 2 * time.Second

// Replica is this process among the replicas of its fleet. Its methods are safe for concurrent use.
type Replica struct {
	own tls.Certificate
	key string

	mu      sync.Mutex
	known   map[string]string // keys by the name of the replica's Lease
	changed chan struct{}     // closed when known changes
}

// New makes the certificate of this process. It knows no other replica.
func New() (*Replica, error) {
	own, err := selfsigned.New("sluice-dispatcher", x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return nil, err
	}
	return &Replica{own: own, key: digest(own.Certificate[0]), known: make(map[string]string),
		changed: make(chan struct{})}, nil
}

func digest(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
}

// Key is the digest of this replica's certificate, which others know it by.
func (r *Replica) Key() string { return r.key }

// Know takes the key of another replica; "" forgets it.
func (r *Replica) Know(lease, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[lease] == key {
		return
	}
	if r.known[lease] = key; key == "" {
		delete(r.known, lease)
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// look reports whether a key is a replica's, and what is closed when that may have changed.
func (r *Replica) look(key string) (bool, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.known {
		if k == key {
			return true, nil
		}
	}
	return false, r.changed
}

// Server returns the configuration of a server of clients that replicas call as well.
func (r *Replica) Server(clients *tls.Config) *tls.Config {
	replicas := &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{r.own}, NextProtos: []string{"h2", "http/1.1"},
		// Nobody has signed these certificates: VerifyConnection says whose count. Sessions are not resumed, so that
		// each connection shows one.
		ClientAuth: tls.RequireAnyClientCert, VerifyConnection: r.verify, SessionTicketsDisabled: true,
	}
	out := clients.Clone()
	out.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		switch {
		case h.ServerName == ServerName:
			return replicas, nil
		case clients.GetConfigForClient != nil:
			return clients.GetConfigForClient(h)
		}
		return nil, nil
	}
	return out
}

// errStranger is told to who calls as a replica and is none.
var errStranger = errors.New("the certificate is that of no replica of this fleet")

// verify accepts the connections of replicas.
func (r *Replica) verify(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errStranger
	}
	key := digest(s.PeerCertificates[0].Raw)
	limit, done := context.WithTimeout(context.Background(), patience)
	defer done()
	for {
		ok, changed := r.look(key)
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-limit.Done():
			return errStranger
		}
	}
}

// Client returns the configuration of a connection to the replica whose key this is when it is called; "" for none.
func (r *Replica) Client(key func() string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{r.own}, ServerName: ServerName,
		InsecureSkipVerify: true, // nobody has signed the certificate: its digest is compared instead
		VerifyConnection: func(s tls.ConnectionState) error {
			if want := key(); want == "" || len(s.PeerCertificates) == 0 ||
				digest(s.PeerCertificates[0].Raw) != want {
				return errors.New("the pod that answers is not the replica that is called: try again")
			}
			return nil
		},
	}
}

// From reports whether a connection is a replica's. Its state must be of a server with the configuration of
// [Replica.Server].
func From(s *tls.ConnectionState) bool { return s != nil && s.ServerName == ServerName }
