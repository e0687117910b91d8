package listen

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/api/access"
)

// TLSFiles names the PEM files of an encrypted server.
type TLSFiles struct {
	Cert, Key string
	// ClientCA has the authorities that sign clients' certificates; "" asks for none. Clients without one may connect
	// all the same with ClientOptional.
	ClientCA       string
	ClientOptional bool
}

// Config reads the files, and again when they change. trouble is told of files that are wrong then; what was read
// before stays in force.
func (f TLSFiles) Config(trouble func(error)) (*tls.Config, error) {
	// A pair changes in two files, one after the other. Until they fit each other the old pair stays in force.
	load := func([]byte) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		return &pair, err
	}
	cert, err := access.Watch(f.Cert, trouble, load)
	if err != nil {
		return nil, err
	}
	key, err := access.Watch(f.Key, trouble, load)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			now := time.Now()
			a, b := cert.Get(now), key.Get(now)
			if a.Leaf != nil && b.Leaf != nil && b.Leaf.NotBefore.After(a.Leaf.NotBefore) {
				return b, nil
			}
			return a, nil
		},
	}
	if f.ClientCA == "" {
		return c, nil
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	if f.ClientOptional {
		c.ClientAuth = tls.VerifyClientCertIfGiven
	}
	// One configuration for each set of authorities, so that sessions that were begun under old ones are not resumed.
	own, err := access.Watch(f.ClientCA, trouble, func(b []byte) (*tls.Config, error) {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(b) {
			return nil, errors.New("holds no certificate")
		}
		return &tls.Config{
			MinVersion: c.MinVersion, GetCertificate: c.GetCertificate, ClientAuth: c.ClientAuth, ClientCAs: pool,
			NextProtos: []string{"h2", "http/1.1"},
		}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("client_ca: %w", err)
	}
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return own.Get(time.Now()), nil }
	return c, nil
}
