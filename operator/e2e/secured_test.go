package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// TestServingWithTLS has a fleet of two cells answer callers with certificates: files come from a Secret and a
// ConfigMap, probes and passing on go their ways, and another Secret counts without a restart.
func TestServingWithTLS(t *testing.T) {
	p := install(t, 2)
	own, next := authority(t), authority(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "front", Namespace: p.ns}, Type: corev1.SecretTypeTLS,
		Data: p.front(own)}
	p.create(secret, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "clients"},
		Data: map[string]string{"ca.crt": string(own.PEM())}})
	f := fleet(2)
	f.Spec.TLS = &v1alpha1.FleetTLS{Secret: "front", ClientCA: &v1alpha1.Authorities{ConfigMap: "clients"}}
	f.Spec.Access = &v1alpha1.FleetAccess{
		Certificates: []v1alpha1.FleetCertificate{{Name: "till", Roles: []v1alpha1.Role{"infer"}}}}
	p.create(f, machines("cpu", 2), p.app("triple", 3), p.app("double", 2))
	c := p.encrypted(own, own)
	for range 8 { // each goes to any dispatcher
		c.answers("triple", 3, 6)
		c.answers("double", 2, 4)
	}
	if _, err := p.encrypted(own, nil).asked(t, "triple"); err == nil {
		t.Error("a client without a certificate is answered")
	}
	if _, err := p.encrypted(own, next).asked(t, "triple"); err == nil {
		t.Error("a client with a certificate of another authority is answered")
	}

	t.Log("the certificate is replaced")
	before := p.pods("dispatcher")
	secret.Data = p.front(next)
	if err := p.c.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	p.encrypted(next, own).answers("triple", 3, 6)
	after := p.pods("dispatcher")
	for _, pod := range after {
		for _, s := range pod.Status.ContainerStatuses {
			if s.RestartCount > 0 {
				t.Errorf("%s was restarted", pod.Name)
			}
		}
	}
	if len(before) != len(after) || before[0].UID != after[0].UID {
		t.Errorf("the dispatchers are others: %d and %d", len(before), len(after))
	}
}

func authority(t *testing.T) *cluster.Authority {
	t.Helper()
	a, err := cluster.NewAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// front is a certificate of the fleet's Service, as a Secret has it.
func (p *place) front(a *cluster.Authority) map[string][]byte {
	p.Helper()
	cert, key, err := a.Issue("front", pkix.Name{CommonName: "default"}, []string{"default." + p.ns + ".svc"}, nil)
	if err != nil {
		p.Fatal(err)
	}
	return map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key}
}

// encrypted is a caller that trusts an authority, and shows a certificate of another; nil shows none.
func (p *place) encrypted(trusts, from *cluster.Authority) *caller {
	p.Helper()
	tlsConfig := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "default." + p.ns + ".svc",
		MinVersion: tls.VersionTLS12}
	tlsConfig.RootCAs.AppendCertsFromPEM(trusts.PEM())
	if from != nil {
		cert, key, err := from.Issue("till", pkix.Name{CommonName: "till"}, nil, nil)
		if err != nil {
			p.Fatal(err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			p.Fatal(err)
		}
		tlsConfig.Certificates = []tls.Certificate{pair}
	}
	c := newCaller(p)
	transport := c.http.Transport.(*http.Transport)
	transport.TLSClientConfig, transport.DisableKeepAlives = tlsConfig, true
	c.scheme = "https"
	return c
}

// asked is a query whose refusal is wanted: an error that is none of TLS fails the test.
func (c *caller) asked(t *testing.T, app string) ([]float32, error) {
	t.Helper()
	if err := c.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := c.ask(t.Context(), app)
	if err != nil && !strings.Contains(err.Error(), "tls: ") {
		t.Errorf("it fails, but not for its certificate: %v", err)
	}
	return got, err
}
