package scaler

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// frontProxy returns the configuration of a server that only the API server can call: it shows a certificate of the
// authority that the ConfigMap extension-apiserver-authentication names. Ours is made anew at every start.
func frontProxy(ctx context.Context, reader client.Reader) (*tls.Config, error) {
	var m corev1.ConfigMap
	key := client.ObjectKey{Namespace: "kube-system", Name: "extension-apiserver-authentication"}
	if err := reader.Get(ctx, key, &m); err != nil {
		return nil, fmt.Errorf("who the API server is: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(m.Data["requestheader-client-ca-file"])) {
		return nil, fmt.Errorf(
			"the ConfigMap %s has no requestheader-client-ca-file: the API server has no aggregation layer", key)
	}
	var names []string
	if text := m.Data["requestheader-allowed-names"]; text != "" {
		if err := json.Unmarshal([]byte(text), &names); err != nil {
			return nil, fmt.Errorf("the ConfigMap %s: requestheader-allowed-names: %w", key, err)
		}
	}
	own, err := certificate()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert,
		VerifyConnection: func(s tls.ConnectionState) error {
			name := s.PeerCertificates[0].Subject.CommonName
			if len(names) > 0 && !slices.Contains(names, name) {
				return fmt.Errorf("the caller is %.100q, not the API server", name)
			}
			return nil
		},
	}, nil
}

func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	t := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "sluice-scaler"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0), DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
