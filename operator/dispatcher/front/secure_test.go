package front

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/listen"
	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/operator/dispatcher/cells"
	"github.com/sluice-serving/sluice/operator/dispatcher/peertls"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
	"github.com/sluice-serving/sluice/operator/internal/selfsigned"
)

// encrypted is two replicas with TLS: holder serves the cell, other passes queries on to it.
type encrypted struct {
	*testing.T
	dir           string
	authority     *cluster.Authority
	holder, other *Front
	files         listen.TLSFiles
}

// guarded has callers with certificates: till may infer, viewer may look.
const guarded = `access: {certificates: [{name: till, roles: [infer]}, {name: viewer, roles: [look]}]}
server: {tls: {cert: %s, key: %s, client_ca: %s, client_optional: true}}
`

func startEncrypted(t *testing.T) *encrypted {
	e := &encrypted{T: t, dir: t.TempDir()}
	at := func(name string) string { return filepath.Join(e.dir, name) }
	var err error
	if e.authority, err = cluster.NewAuthority(e.dir); err != nil {
		t.Fatal(err)
	}
	e.issue("server", "fleet")
	e.files = listen.TLSFiles{Cert: at("server.crt"), Key: at("server.key"), ClientCA: at("ca.crt"),
		ClientOptional: true}
	cell := fmt.Sprintf(guarded, e.files.Cert, e.files.Key, e.files.ClientCA) + config
	runs := startRunsOf(t, cell, func(ctx context.Context) *x509.Certificate { return e.holder.Certificate(ctx) })
	e.holder = e.front(Config{Table: NewTable("a"), Runs: runs, Hold: time.Second})
	e.other = e.front(Config{Table: NewTable("b"), Runs: noRuns{}, Hold: time.Second})
	e.holder.c.Replica.Know("b", e.other.c.Replica.Key())
	for _, f := range []*Front{e.holder, e.other} {
		f.held(e.holder.holder("a"))
	}
	return e
}

func (e *encrypted) front(c Config) *Front {
	var err error
	if c.Server.TLS, err = e.files.Config(nil); err != nil {
		e.Fatal(err)
	}
	if c.Replica, err = peertls.New(); err != nil {
		e.Fatal(err)
	}
	return serveFront(e.T, c)
}

// issue makes a certificate of a name.
func (e *encrypted) issue(file, name string) tls.Certificate {
	e.Helper()
	cert, key, err := e.authority.Issue(file, pkix.Name{CommonName: name}, nil, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		e.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		e.Fatal(err)
	}
	return pair
}

// dialing is the TLS of a client that trusts the servers' authority; who is empty for one without a certificate.
func (e *encrypted) dialing(who string) *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(e.authority.PEM())
	out := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if who != "" {
		out.Certificates = []tls.Certificate{e.issue("client", who)}
	}
	return out
}

// asked is the answer to a query over HTTP: its status and text, or why there is none.
func asked(t *testing.T, f *Front, c *tls.Config, headers map[string]string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, "https://"+f.HTTPAddr()+"/v2/models/app/infer",
		strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	a, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	b, _ := io.ReadAll(a.Body)
	return a.StatusCode, string(b)
}

// called is the code of a call, and of a stream of one request.
func called(t *testing.T, f *Front, c *tls.Config, headers map[string]string) (unary, stream codes.Code) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+f.GRPCAddr(), grpc.WithTransportCredentials(credentials.NewTLS(c)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, done := context.WithTimeout(metadata.NewOutgoingContext(t.Context(), metadata.New(headers)), 10*time.Second)
	defer done()
	client := pb.NewGRPCInferenceServiceClient(conn)
	_, err = client.ModelInfer(ctx, grpcQuestion())
	unary = status.Code(err)
	s, err := client.ModelStreamInfer(ctx)
	if err == nil {
		_ = s.Send(grpcQuestion())
		_ = s.CloseSend()
		_, err = s.Recv()
	}
	return unary, status.Code(err)
}

// A caller's certificate counts at the replica that answers, and at one that passes the query on. What only a replica
// may say counts from nobody else.
func TestCertificatesOfCallers(t *testing.T) {
	t.Parallel()
	e := startEncrypted(t)
	till := e.issue("till", "till")
	leaf := base64.StdEncoding.EncodeToString(till.Certificate[0])
	forged := map[string]string{"sluice-certificate": leaf, "sluice-passed": "1", "sluice-handed": "1"}
	for _, x := range []struct {
		who     string
		headers map[string]string
		status  int
		code    codes.Code
	}{
		{"till", nil, 200, codes.OK},
		{"viewer", nil, 403, codes.PermissionDenied},
		{"", nil, 401, codes.Unauthenticated},
		{"stranger", nil, 401, codes.Unauthenticated},
		{"", forged, 401, codes.Unauthenticated},
		{"viewer", forged, 403, codes.PermissionDenied},
		{"till", forged, 200, codes.OK},
	} {
		for name, f := range map[string]*Front{"holder": e.holder, "other": e.other} {
			what := fmt.Sprintf("%q with %d headers at the %s", x.who, len(x.headers), name)
			if got, text := asked(t, f, e.dialing(x.who), x.headers); got != x.status {
				t.Errorf("%s: %d %s, want %d", what, got, text, x.status)
			}
			if unary, stream := called(t, f, e.dialing(x.who), x.headers); unary != x.code || stream != x.code {
				t.Errorf("%s: %v, and a stream %v, want %v", what, unary, stream, x.code)
			}
		}
	}
	list, err := e.other.stats(t.Context(), shown{certificate: parsed(t, e.issue("viewer", "viewer"))})
	if err != nil || len(list) != 1 {
		t.Errorf("statistics for who may look: %d, %v", len(list), err)
	}
	var refused *notAllowed
	if _, err := e.other.stats(t.Context(), shown{}); !errors.As(err, &refused) {
		t.Errorf("statistics for nobody: %v", err)
	}
	// A stream's end reaches its client before the front has tidied up behind it.
	left, until := e.holder.handed.count(), time.Now().Add(30*time.Second)
	for ; left > 0 && time.Now().Before(until); left = e.holder.handed.count() {
		time.Sleep(time.Millisecond)
	}
	if left > 0 {
		t.Errorf("%d certificates of streams that have ended are kept", left)
	}
}

func (h *handed) count() (n int) {
	h.byName.Range(func(any, any) bool { n++; return true })
	return n
}

func parsed(t *testing.T, c tls.Certificate) *x509.Certificate {
	x, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Nobody but a replica gets a connection on which it may speak for others, whatever it asks for by name.
func TestStrangersAreNoReplicas(t *testing.T) {
	t.Parallel()
	e := startEncrypted(t)
	own, err := selfsigned.New("sluice-dispatcher", x509.ExtKeyUsageClientAuth)
	if err != nil {
		t.Fatal(err)
	}
	till := e.issue("till", "till")
	headers := map[string]string{
		"sluice-passed": "1", "sluice-certificate": base64.StdEncoding.EncodeToString(till.Certificate[0]),
	}
	for what, certificates := range map[string][]tls.Certificate{
		"one of its own": {own}, "a caller's": {till}, "none": nil,
	} {
		c := &tls.Config{ServerName: peertls.ServerName, Certificates: certificates, InsecureSkipVerify: true}
		if got, text := asked(t, e.holder, c, headers); got != 0 {
			t.Errorf("with %s: %d %s", what, got, text)
		}
		if unary, stream := called(t, e.holder, c, headers); unary != codes.Unavailable || stream != codes.Unavailable {
			t.Errorf("with %s: %v and %v", what, unary, stream)
		}
	}
	// Another spelling is any other name: the connection is a client's, and its headers do not count.
	c := &tls.Config{ServerName: strings.ToUpper(peertls.ServerName), InsecureSkipVerify: true}
	if got, text := asked(t, e.holder, c, headers); got != 401 {
		t.Errorf("by another spelling: %d %s", got, text)
	}
	// Sessions of clients are not resumed as a replica's.
	c = e.dialing("till")
	c.ClientSessionCache = &oneSession{}
	if got, text := asked(t, e.holder, c, nil); got != 200 {
		t.Fatalf("a client: %d %s", got, text)
	}
	again := c.Clone()
	again.ServerName, again.InsecureSkipVerify = peertls.ServerName, true
	if got, text := asked(t, e.holder, again, headers); got != 0 {
		t.Errorf("with a client's session: %d %s", got, text)
	}
}

// oneSession gives the last session to every server.
type oneSession struct{ last *tls.ClientSessionState }

func (o *oneSession) Get(string) (*tls.ClientSessionState, bool) { return o.last, o.last != nil }

func (o *oneSession) Put(_ string, s *tls.ClientSessionState) { o.last = s }

// A replica sends nothing to a pod that is not the replica it means, and nothing in plain text.
func TestOnlyTheHolderIsAsked(t *testing.T) {
	t.Parallel()
	e := startEncrypted(t)
	till := e.dialing("till")
	for what, by := range map[string]cells.Holder{
		"another key": {Identity: "a", HTTP: e.holder.HTTPAddr(), GRPC: e.holder.GRPCAddr(), Key: "00"},
		"no TLS":      {Identity: "a", HTTP: e.holder.HTTPAddr(), GRPC: e.holder.GRPCAddr()},
	} {
		e.other.held(by)
		if got, text := asked(t, e.other, till, nil); got != http.StatusServiceUnavailable {
			t.Errorf("%s over HTTP: %d %s", what, got, text)
		}
		if unary, _ := called(t, e.other, till, nil); unary != codes.Unavailable {
			t.Errorf("%s over gRPC: %v", what, unary)
		}
		if _, err := e.other.AskReached(t.Context(), by); err == nil {
			t.Errorf("%s: it was asked when it reached the API server", what)
		}
	}
	if _, err := e.other.AskReached(t.Context(), e.holder.holder("a")); err == nil || err.Error() != "never" {
		t.Errorf("the holder says %v", err)
	}
	// A replica that nobody knows any more is a stranger to the others.
	e.holder.c.Replica.Know("b", "")
	e.other.held(e.holder.holder("a"))
	if got, text := asked(t, e.other, till, nil); got != http.StatusServiceUnavailable {
		t.Errorf("passed on by a replica that is not known: %d %s", got, text)
	}
}
