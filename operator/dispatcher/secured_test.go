package dispatcher_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// issuer signs tokens, and publishes its key.
type issuer struct {
	*testing.T
	key *ecdsa.PrivateKey
	url string
}

var segment = base64.RawURLEncoding.EncodeToString

func newIssuer(t *testing.T) *issuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	set := fmt.Sprintf(`{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":"k","x":%q,"y":%q}]}`,
		segment(point[1:33]), segment(point[33:]))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, set)
	}))
	t.Cleanup(s.Close)
	return &issuer{t, key, s.URL}
}

// token is one of tenant lab with a scope.
func (i *issuer) token(scope string) string {
	claims, err := json.Marshal(map[string]any{"iss": "https://id.example", "aud": "sluice", "sub": "robot",
		"tenant": "lab", "scope": scope, "exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		i.Fatal(err)
	}
	text := segment([]byte(`{"alg":"ES256","kid":"k"}`)) + "." + segment(claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, sum[:])
	if err != nil {
		i.Fatal(err)
	}
	return text + "." + segment(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

// secured is a fleet of two cells whose front is encrypted.
type secured struct {
	*fleet
	dir       string
	authority *cluster.Authority
	flags     []string
}

func newSecured(t *testing.T, c *cluster.Cluster, access, required string) *secured {
	s := &secured{fleet: newFleet(t, c), dir: t.TempDir()}
	s.authority = s.newAuthority("own")
	s.front(s.authority)
	cert, key, ca := filepath.Join(s.dir, "tls.crt"), filepath.Join(s.dir, "tls.key"), filepath.Join(s.dir, "ca.crt")
	s.flags = append(strings.Fields(required), "--tls-cert", cert, "--tls-key", key, "--client-ca", ca)
	guarded := fmt.Sprintf("server: {tls: {cert: %s, key: %s, client_ca: %s}}\n", cert, key, ca) + access
	s.setCell(0, guarded+fakeCell(1, "a0"))
	s.setCell(1, guarded+fakeCell(1, "a1"))
	s.start("d0", nil, s.flags...)
	s.start("d1", nil, s.flags...)
	s.served(2, 1)
	return s
}

func (s *secured) newAuthority(name string) *cluster.Authority {
	s.t.Helper()
	dir := filepath.Join(s.dir, name)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		var a *cluster.Authority
		if a, err = cluster.NewAuthority(dir); err == nil {
			return a
		}
	}
	s.t.Fatal(err)
	return nil
}

// front gives the replicas a certificate of an authority, by which they know clients as well.
func (s *secured) front(a *cluster.Authority) {
	s.t.Helper()
	cert, key, err := a.Issue("front", pkix.Name{CommonName: "f"}, nil, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		s.t.Fatal(err)
	}
	for name, text := range map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": a.PEM()} {
		path := filepath.Join(s.dir, name)
		if err := os.WriteFile(path+".new", text, 0o600); err != nil {
			s.t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			s.t.Fatal(err)
		}
	}
}

// client trusts the front's authority, and shows a certificate of from with a name; nil shows none.
func (s *secured) client(trusts, from *cluster.Authority, name string) *tls.Config {
	s.t.Helper()
	c := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	c.RootCAs.AppendCertsFromPEM(trusts.PEM())
	if from != nil {
		cert, key, err := from.Issue("client", pkix.Name{CommonName: name}, nil, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			s.t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

// ask sends a query to a replica with these headers: the status and the text of the answer, or why there is none.
func (r *replica) ask(t *testing.T, c *tls.Config, app string, headers map[string]string) (int, string) {
	t.Helper()
	q, err := http.NewRequest(http.MethodPost, "https://"+r.http+"/v2/models/"+app+"/infer",
		strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range headers {
		q.Header.Set(k, v)
	}
	client := &http.Client{Timeout: 12 * time.Second,
		Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
	a, err := client.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	b, _ := io.ReadAll(a.Body)
	return a.StatusCode, string(b)
}

// call is the code of a call over gRPC and of a stream of one request.
func (r *replica) call(t *testing.T, c *tls.Config, app string, headers map[string]string) (unary, stream string) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+r.grpc, grpc.WithTransportCredentials(credentials.NewTLS(c)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	lower := metadata.MD{}
	for k, v := range headers {
		lower.Set(k, v)
	}
	ctx, done := context.WithTimeout(metadata.NewOutgoingContext(t.Context(), lower), 12*time.Second)
	defer done()
	p := pb.NewGRPCInferenceServiceClient(conn)
	_, err = p.ModelInfer(ctx, grpcQuestion(app))
	unary = status.Code(err).String()
	s, err := p.ModelStreamInfer(ctx)
	if err == nil {
		_ = s.Send(grpcQuestion(app))
		_ = s.CloseSend()
		_, err = s.Recv()
	}
	return unary, status.Code(err).String()
}

// admitted is how many queries of a tenant all replicas have admitted.
func (s *secured) admitted(tenant string) (n int) {
	s.t.Helper()
	for _, r := range s.live() {
		a, err := quick.Get("http://" + r.admin + "/metrics")
		if err != nil {
			s.t.Fatal(err)
		}
		b, _ := io.ReadAll(a.Body)
		_ = a.Body.Close()
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, "sluice_access_total{") && strings.Contains(line, `reason="admitted"`) &&
				strings.Contains(line, `tenant="`+tenant+`"`) {
				var x float64
				if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' '):], &x); err == nil {
					n += int(x)
				}
			}
		}
	}
	return n
}

// TestFleetWithTLS has two replicas serve two cells to callers with certificates and with tokens. Each query is asked
// of both replicas, so that half of them are passed on. Certificates are replaced while they run, and so is a replica.
func TestFleetWithTLS(t *testing.T) {
	issuer := newIssuer(t)
	s := newSecured(t, cluster.Start(t, cluster.Options{}), fmt.Sprintf(`tenants: [{name: shop}, {name: lab}]
access:
  certificates: [{name: till, tenant: shop, roles: [infer]}, {name: viewer, roles: [look]}]
  jwt: {issuer: "https://id.example", audience: sluice, key_url: %q, tenant_claim: tenant}
`, issuer.url), "--client-optional")
	stranger := s.newAuthority("stranger")
	till, bare := s.client(s.authority, s.authority, "till"), s.client(s.authority, nil, "")
	token := func(text string) map[string]string { return map[string]string{"Authorization": "Bearer " + text} }
	forged := map[string]string{"Sluice-Passed": "1",
		"Sluice-Certificate": base64.StdEncoding.EncodeToString(till.Certificates[0].Certificate[0])}
	asks := func(what string, c *tls.Config, headers map[string]string, want int, code string) {
		t.Helper()
		for _, r := range s.live() {
			for _, app := range []string{"a0", "a1"} {
				if got, text := r.ask(t, c, app, headers); got != want {
					t.Errorf("%s: %s answers for %s: %d %s, want %d", what, r.name, app, got, text, want)
				}
				if unary, stream := r.call(t, c, app, headers); unary != code || stream != code {
					t.Errorf("%s: %s answers for %s over gRPC: %s, and over a stream %s, want %s", what, r.name, app,
						unary, stream, code)
				}
			}
		}
	}
	cluster.Eventually(t, "both apps are answered by both replicas", func() error {
		for _, r := range s.live() {
			for _, app := range []string{"a0", "a1"} {
				if code, text := r.ask(t, till, app, nil); code != http.StatusOK {
					return fmt.Errorf("%s for %s: %d %s", r.name, app, code, text)
				}
			}
		}
		return nil
	})
	shop, lab := s.admitted("shop"), s.admitted("lab")
	asks("a certificate", till, nil, 200, "OK")
	asks("a token", bare, token(issuer.token("infer")), 200, "OK")
	if a, b := s.admitted("shop")-shop, s.admitted("lab")-lab; a != 12 || b != 12 {
		t.Errorf("%d queries of tenant shop and %d of tenant lab were admitted, want 12 and 12", a, b)
	}
	asks("a certificate without the role", s.client(s.authority, s.authority, "viewer"), nil, 403, "PermissionDenied")
	asks("a token without the role", bare, token(issuer.token("look")), 403, "PermissionDenied")
	asks("another issuer's token", bare, token(newIssuer(t).token("infer")), 401, "Unauthenticated")
	asks("nothing", bare, nil, 401, "Unauthenticated")
	asks("another's certificate in a header", bare, forged, 401, "Unauthenticated")
	asks("a certificate of another authority", s.client(s.authority, stranger, "till"), nil, 0, "Unavailable")
	asks("a client that trusts another authority", s.client(stranger, s.authority, "till"), nil, 0, "Unavailable")
	for _, r := range s.live() {
		if !r.ready() {
			t.Errorf("the probe of %s fails", r.name)
		}
		if code, _ := r.infer("a0"); code == http.StatusOK {
			t.Errorf("%s answers without TLS", r.name)
		}
	}

	// Another authority, for the front and for clients, without a restart.
	s.front(stranger)
	renewed := s.client(stranger, stranger, "till")
	cluster.Eventually(t, "the new certificates count", func() error {
		for _, r := range s.live() {
			if code, text := r.ask(t, renewed, "a0", nil); code != http.StatusOK {
				return fmt.Errorf("%s: %d %s", r.name, code, text)
			}
		}
		return nil
	})
	asks("a new certificate", renewed, nil, 200, "OK")
	asks("a certificate of the authority before", s.client(stranger, s.authority, "till"), nil, 0, "Unavailable")

	// A new replica is known to the others by its Lease alone.
	s.start("d2", nil, s.flags...)
	s.named("d1").kill()
	s.served(2, 1)
	cluster.Eventually(t, "the new replica answers", func() error {
		for _, app := range []string{"a0", "a1"} {
			if code, text := s.named("d2").ask(t, renewed, app, nil); code != http.StatusOK {
				return fmt.Errorf("d2 for %s: %d %s", app, code, text)
			}
		}
		return nil
	})
	asks("a certificate, after a replica was replaced", renewed, nil, 200, "OK")
}

// TestFleetThatWantsCertificates lets nobody connect without one. Probes do, at an address of their own.
func TestFleetThatWantsCertificates(t *testing.T) {
	s := newSecured(t, cluster.Start(t, cluster.Options{}),
		"access: {certificates: [{name: till, roles: [infer]}]}\n", "")
	till, bare := s.client(s.authority, s.authority, "till"), s.client(s.authority, nil, "")
	for _, r := range s.live() {
		for _, app := range []string{"a0", "a1"} {
			cluster.Eventually(t, "the app is answered", func() error {
				if code, text := r.ask(t, till, app, nil); code != http.StatusOK {
					return fmt.Errorf("%s for %s: %d %s", r.name, app, code, text)
				}
				return nil
			})
		}
		if code, text := r.ask(t, bare, "a0", nil); code != 0 {
			t.Errorf("%s answers who has no certificate: %d %s", r.name, code, text)
		}
		if unary, stream := r.call(t, bare, "a0", nil); unary != "Unavailable" || stream != "Unavailable" {
			t.Errorf("%s answers who has no certificate: %s, %s", r.name, unary, stream)
		}
		for _, path := range []string{"/livez", "/readyz"} {
			a, err := quick.Get("http://" + r.admin + path)
			if err != nil || a.StatusCode != http.StatusOK {
				t.Errorf("the probe %s of %s: %v, %v", path, r.name, a, err)
			}
		}
	}
}
