package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/api/server"
)

// certificate makes a self-signed key pair for 127.0.0.1, server and client alike.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth,
			x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// Both protocols over TLS, and clients without the required certificate.
func TestTLS(t *testing.T) {
	pair, pool := certificate(t)
	s := start(t, server.Config{
		TLS: &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: pool,
			ClientAuth: tls.RequireAndVerifyClientCert,
		},
	})
	for _, c := range []struct {
		name   string
		config *tls.Config
		good   bool
	}{
		{"with a certificate", &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, true},
		{"without one", &tls.Config{RootCAs: pool}, false},
		{"that does not trust the server", &tls.Config{Certificates: []tls.Certificate{pair}}, false},
	} {
		transport := &http.Transport{TLSClientConfig: c.config.Clone(), DisableKeepAlives: true}
		resp, err := (&http.Client{
			Transport: transport, Timeout: 10 * time.Second,
		}).Get("https://" + s.HTTPAddr() + "/v2/health/live")
		if err == nil {
			resp.Body.Close()
		}
		if (err == nil) != c.good {
			t.Errorf("HTTP client %s: %v", c.name, err)
		}
		conn, err := grpc.NewClient(s.GRPCAddr(), grpc.WithTransportCredentials(credentials.NewTLS(c.config)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = pb.NewGRPCInferenceServiceClient(conn).ServerLive(t.Context(), &pb.ServerLiveRequest{})
		if (err == nil) != c.good {
			t.Errorf("gRPC client %s: %v", c.name, err)
		}
		_ = conn.Close()
	}
}
