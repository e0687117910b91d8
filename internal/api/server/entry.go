package server

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/api/listen"
	"github.com/sluice-serving/sluice/internal/api/oip"
)

// callerKey is the key of the caller in the context of its request.
type callerKey struct{}

// callerOf returns who sent a request; nil for one that did not come through an entry.
func callerOf(ctx context.Context) *access.Caller {
	c, _ := ctx.Value(callerKey{}).(*access.Caller)
	return c
}

// tenantOf returns the number of the tenant that sent a request.
func tenantOf(ctx context.Context) int {
	if c := callerOf(ctx); c != nil {
		return c.Tenant
	}
	return 0
}

// shownBy returns what a request over HTTP shows of its caller.
func shownBy(r *http.Request) access.Shown {
	shown := access.Shown{Authorization: r.Header.Get("Authorization"), Key: r.Header.Get("X-API-Key")}
	shown.Certificate = Verified(r.TLS)
	return shown
}

// Verified returns the certificate of a client that was verified when it connected; nil for none.
func Verified(s *tls.ConnectionState) *x509.Certificate {
	if s == nil || len(s.VerifiedChains) == 0 || len(s.VerifiedChains[0]) == 0 {
		return nil
	}
	return s.VerifiedChains[0][0]
}

// need is what a request asks of its caller.
type need struct {
	open    bool // to everybody, whatever they show
	roles   access.Roles
	query   bool // it counts against its tenant's limits
	changes bool // it is written down; its handler looks at the caller's roles
}

// needOf returns what a request over HTTP needs. Requests that change something are checked by their handlers
// (mayControl), which know more about them.
func needOf(r *http.Request) need {
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/v2/health/"), path == "/":
		return need{open: true}
	case r.Method == http.MethodGet || r.Method == http.MethodHead || path == "/v2/repository/index":
		return need{roles: access.Look}
	case strings.HasPrefix(path, "/v2/repository/"), strings.HasSuffix(path, "/trace/setting"), path == "/v2/logging":
		return need{changes: true}
	case strings.Contains(path, "sharedmemory"):
		return need{roles: access.Infer, changes: true}
	}
	return need{roles: access.Infer, query: true}
}

// entry lets callers in who may do what they ask for.
func (s *Server) entry(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := needOf(r)
		if n.open {
			next.ServeHTTP(w, r)
			return
		}
		shown := shownBy(r)
		caller, err := s.config.Gate.Enter(&shown, n.roles)
		e := entering{server: s, protocol: "http", need: n, caller: caller, err: err, next: next}
		e.serve(w, r)
	})
}

// adminEntry is the entry of the address of administration. Where callers need not say who they are, anybody who
// reaches it reads, but for functions; changes need the admin token, if there is one.
func (s *Server) adminEntry(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		if reads && s.config.AdminPage != nil && s.config.AdminPage(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		functions := strings.HasPrefix(r.URL.Path, "/v1/")
		roles := access.Look
		switch {
		case functions && (!reads || !s.config.Gate.Strict()):
			roles = access.Deploy
		case !reads:
			roles = access.Administer
		}
		shown := shownBy(r)
		var caller *access.Caller
		var err error
		switch {
		case s.config.Gate.Strict():
			caller, err = s.config.Gate.Enter(&shown, roles)
		case s.config.Token == "":
			caller, err = s.config.Gate.EnterFrom(&shown, roles, access.All)
		default:
			caller, err = s.config.Gate.EnterFrom(&shown, roles, access.Look)
		}
		e := entering{server: s, protocol: "admin", need: need{changes: !reads}, caller: caller, err: err, next: next}
		e.serve(w, r)
	})
}

// entering is a request over HTTP whose caller is known, or refused with err.
type entering struct {
	server   *Server
	protocol string
	need     need
	caller   *access.Caller
	err      error
	next     http.Handler
}

// serve answers the request with its caller in its context, and writes down what has to be.
func (e *entering) serve(w http.ResponseWriter, r *http.Request) {
	s := e.server
	// A query of no tenant has no limits of its caller, so that nothing asks who it is.
	if e.caller != nil && (!e.need.query || e.caller.Tenant != 0) {
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, e.caller))
	}
	if written := s.records.begin(e.need.changes); written.any() {
		e.serveWritten(w, r, &record{began: written.began, audits: written.audits, samples: written.samples})
		return
	}
	if err := e.admitted(w, r); err != nil { // most requests
		refuseEntry(w, err)
	}
}

// serveWritten is serve for a request that is written down.
func (e *entering) serveWritten(w http.ResponseWriter, r *http.Request, written *record) {
	seen := &seenWriter{ResponseWriter: w}
	written.ID = requestID(r.Header.Get("X-Request-Id"))
	w.Header().Set("X-Request-Id", written.ID)
	if err := e.admitted(seen, r); err != nil {
		written.Why = access.Cut(refuseEntry(seen, err))
	}
	written.From, written.Protocol = r.RemoteAddr, e.protocol
	written.What = r.Method + " " + access.Cut(r.URL.Path)
	written.Result = strconv.Itoa(max(seen.status, http.StatusOK))
	written.Bytes = seen.bytes
	e.server.records.end(written, e.caller, e.server.config.Gate)
}

// admitted has the request answered if its caller may send it now.
func (e *entering) admitted(w http.ResponseWriter, r *http.Request) error {
	if e.err != nil {
		return e.err
	}
	if e.need.query {
		conn := listen.ConnOf(r.Context())
		if !conn.Enter(e.caller.Tenant) {
			return e.server.config.Gate.Crowds(e.caller)
		}
		defer conn.Leave(e.caller.Tenant)
		quota, leave, err := e.server.config.Gate.Admit(e.caller)
		setQuota(w.Header(), quota)
		if err != nil {
			return err
		}
		defer leave()
	}
	e.next.ServeHTTP(w, r)
	return nil
}

// refuseEntry answers a request that is not let in, and returns why.
func refuseEntry(w http.ResponseWriter, err error) string {
	e, retry := clientError(err)
	if e.Code == oip.Unauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="sluice"`)
	}
	setRetry(w.Header(), retry)
	writeError(w, e.Code.HTTP(), e.Error())
	return e.Error()
}

// setRetry says when to try again, in whole seconds.
func setRetry(h http.Header, retry time.Duration) {
	if retry > 0 {
		h.Set("Retry-After", wholeSeconds(retry))
	}
}

func wholeSeconds(d time.Duration) string {
	return strconv.Itoa(int((d + time.Second - 1) / time.Second))
}

// The headers of a quota, as the IETF's draft names them.
const (
	quotaLimit     = "RateLimit-Limit"
	quotaRemaining = "RateLimit-Remaining"
	quotaReset     = "RateLimit-Reset"
)

func setQuota(h http.Header, q access.Quota) {
	if q.Limit > 0 {
		h.Set(quotaLimit, strconv.Itoa(q.Limit))
		h.Set(quotaRemaining, strconv.Itoa(q.Remaining))
		h.Set(quotaReset, wholeSeconds(q.Reset))
	}
}

// seenWriter remembers the status and the size of an answer.
type seenWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader implements http.ResponseWriter.
func (w *seenWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *seenWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *seenWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// longestID bounds the identifiers of requests that clients give.
const longestID = 64

// requestID returns the identifier that a client gives its request, or a new one.
func requestID(given string) string {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if given == "" || len(given) > longestID || strings.ContainsFunc(given, odd) {
		return rand.Text()
	}
	return given
}

// records writes down who did what: every call that changes something, and one of so many of all calls.
type records struct {
	audit  func(*access.Entry)
	access *access.Lines
	every  uint64
	calls  atomic.Uint64
}

// record is an entry that is to be written.
type record struct {
	access.Entry
	began           time.Time
	audits, samples bool
}

func (r *record) any() bool { return r.audits || r.samples }

// begin decides whether a call is written down.
func (r *records) begin(changes bool) (out record) {
	out.audits = changes && r.audit != nil
	out.samples = r.access != nil && r.calls.Add(1)%r.every == 0
	if out.any() {
		out.began = time.Now()
	}
	return out
}

// end writes an entry.
func (r *records) end(x *record, caller *access.Caller, gate *access.Gate) {
	x.Time, x.Millis = x.began.UTC(), float64(time.Since(x.began).Microseconds())/1e3
	x.Who, x.How = "unknown", "none"
	if caller != nil {
		x.Who, x.How, x.Tenant = caller.Name, caller.How, gate.Tenant(caller).Name
	}
	if x.audits {
		r.audit(&x.Entry)
	}
	if x.samples {
		r.access.Write(&x.Entry)
	}
}
