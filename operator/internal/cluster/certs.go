package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity of the certificates: longer than any test.
const validity = 24 * time.Hour

// Authority signs certificates of tests: those of a control plane, or of servers and clients.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte // of cert
}

// NewAuthority makes one whose certificate is ca.crt in dir.
func NewAuthority(dir string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &Authority{dir: dir, key: key}
	template := certificate(pkix.Name{CommonName: "sluice-test-ca"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a, os.WriteFile(a.path("ca.crt"), a.pem, 0o600)
}

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte { return a.pem }

func certificate(name pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: name,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
}

func (a *Authority) path(name string) string { return filepath.Join(a.dir, name) }

// Issue signs a certificate for a client or server and writes it to FILE.crt and FILE.key in the authority's folder.
func (a *Authority) Issue(file string, name pkix.Name, hosts []string, addresses []net.IP) (cert, key []byte,
	err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := certificate(name)
	template.DNSNames, template.IPAddresses = hosts, addresses
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if key, err = a.keyPair(file, private); err != nil {
		return nil, nil, err
	}
	return cert, key, os.WriteFile(a.path(file+".crt"), cert, 0o600)
}

// keyPair writes a key to FILE.key.
func (a *Authority) keyPair(file string, private *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return text, os.WriteFile(a.path(file+".key"), text, 0o600)
}
