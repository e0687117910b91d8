package scaler

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/internal/selfsigned"
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
	own, err := selfsigned.New("sluice-scaler", x509.ExtKeyUsageServerAuth)
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
