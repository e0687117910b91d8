package front

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/operator/dispatcher/peertls"
)

// Every cell asks who calls. Keys and tokens are in the headers that are passed on. A certificate is shown to the
// replica that ends TLS alone: that one verifies it, and passes it on in a header which counts from replicas alone.

// headerCertificate is the certificate of a query's caller, between replicas with TLS: DER in base64.
const headerCertificate = "Sluice-Certificate"

// keyHanded is the metadata that names a certificate to a run of this process (handed).
const keyHanded = "sluice-handed"

// shown is what a caller shows of itself.
type shown struct {
	header      http.Header // Authorization and X-Api-Key count
	certificate *x509.Certificate
}

// shownBy returns what a request shows; it has been through origin.
func shownBy(r *http.Request) shown { return shown{r.Header, server.Verified(r.TLS)} }

// put has a request to a cell show the same; to another replica it says so in headers.
func (s shown) put(r *http.Request, replica bool) {
	for _, name := range []string{"Authorization", "X-Api-Key"} {
		if x := s.header.Values(name); len(x) > 0 {
			r.Header[name] = x
		}
	}
	if s.certificate == nil {
		return
	}
	if replica {
		r.Header.Set(headerCertificate, encodeCertificate(s.certificate))
		return
	}
	r.TLS = stateOf(s.certificate)
}

func encodeCertificate(c *x509.Certificate) string { return base64.StdEncoding.EncodeToString(c.Raw) }

// stateOf is the state of a connection whose client has shown a certificate; nil for none.
func stateOf(c *x509.Certificate) *tls.ConnectionState {
	if c == nil {
		return nil
	}
	return &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{c}}}
}

// origin has a request over HTTP be what its headers between replicas say, where another replica sent it. From anybody
// else they do not count. Without TLS replicas are not known: what they pass on is known by keys and tokens alone.
func (f *Front) origin(r *http.Request) error {
	text := r.Header.Get(headerCertificate)
	delete(r.Header, headerCertificate)
	if !f.secure() {
		return nil
	}
	if !peertls.From(r.TLS) {
		delete(r.Header, headerPassed)
		return nil
	}
	c, err := f.parsed.parse(text)
	r.TLS = stateOf(c)
	return err
}

// originOf is origin for a call over gRPC: it returns a context with the caller's certificate, and whether another
// replica has passed the call on.
func (f *Front) originOf(ctx context.Context) (context.Context, bool, error) {
	passed := len(metadata.ValueFromIncomingContext(ctx, keyPassed)) > 0
	if !f.secure() {
		return ctx, passed, nil
	}
	state, _ := server.TLSOfCall(ctx)
	c := server.Verified(&state)
	if peertls.From(&state) {
		text, err := "", error(nil)
		if v := metadata.ValueFromIncomingContext(ctx, keyCertificate); len(v) > 0 {
			text = v[0]
		}
		if c, err = f.parsed.parse(text); err != nil {
			return ctx, passed, status.Error(codes.InvalidArgument, err.Error())
		}
	} else {
		passed = false
	}
	return context.WithValue(ctx, certificateKey{}, c), passed, nil
}

type certificateKey struct{}

// certificateOf returns the certificate in a context of originOf.
func certificateOf(ctx context.Context) *x509.Certificate {
	c, _ := ctx.Value(certificateKey{}).(*x509.Certificate)
	return c
}

// Certificate returns the certificate of a call that the front hands to a run of this process; nil for none.
func (f *Front) Certificate(ctx context.Context) *x509.Certificate {
	if !f.secure() {
		return nil
	}
	if c, ok := ctx.Value(certificateKey{}).(*x509.Certificate); ok {
		return c
	}
	return f.handed.get(ctx) // of a stream, which reaches its run over a connection
}

// handed are the certificates of streams to runs of this process, by a name that nobody can guess.
type handed struct{ byName sync.Map }

// hand adds a certificate to the metadata of a stream; the caller calls forget when the stream has ended.
func (h *handed) hand(md metadata.MD, c *x509.Certificate) (forget func()) {
	if c == nil {
		return func() {}
	}
	name := rand.Text()
	h.byName.Store(name, c)
	md.Set(keyHanded, name)
	return func() { h.byName.Delete(name) }
}

func (h *handed) get(ctx context.Context) *x509.Certificate {
	v := metadata.ValueFromIncomingContext(ctx, keyHanded)
	if len(v) == 0 {
		return nil
	}
	c, _ := h.byName.Load(v[0])
	out, _ := c.(*x509.Certificate)
	return out
}

// mostParsed bounds the certificates that are remembered: to read one takes longer than all else about a small query.
const mostParsed = 1024

// certificates remembers those that replicas have passed on, by their text.
type certificates struct {
	mu   sync.RWMutex
	seen map[string]*x509.Certificate
}

// parse reads a certificate; the empty text is none.
func (p *certificates) parse(text string) (*x509.Certificate, error) {
	if text == "" {
		return nil, nil
	}
	p.mu.RLock()
	c := p.seen[text]
	p.mu.RUnlock()
	if c != nil {
		return c, nil
	}
	der, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		c, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return nil, errors.New("the caller's certificate cannot be read as another replica passed it on")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil || len(p.seen) >= mostParsed {
		p.seen = make(map[string]*x509.Certificate)
	}
	p.seen[text] = c
	return c, nil
}
