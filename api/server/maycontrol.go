package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/sluice-serving/sluice/api/oip"
)

// errControl is the error for clients that may not load and unload models or change settings.
var errControl = oip.Errorf(oip.Unauthenticated, "", "loading and unloading models, and changing settings, needs the "+
	"token of the server's admin_token file (Authorization: Bearer TOKEN), or server.model_control, which lets every "+
	"client do it")

// showsToken reports whether the value of an Authorization header is a bearer's with this token. No token is shown by
// anybody.
func showsToken(authorization, token string) bool {
	kind, shown, _ := strings.Cut(authorization, " ")
	// Sums have one length, so that a comparison does not reveal the token's.
	got, want := sha256.Sum256([]byte(strings.TrimSpace(shown))), sha256.Sum256([]byte(token))
	return token != "" && strings.EqualFold(kind, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// mayControl returns an error unless a caller with these Authorization headers may load and unload models and change
// settings. Where it calls from plays no part: every caller behind a proxy on this machine calls from this machine.
func (c *Config) mayControl(authorization []string) error {
	if c.ModelControl || slices.ContainsFunc(authorization, func(a string) bool { return showsToken(a, c.Token) }) {
		return nil
	}
	return errControl
}

// mayControl is the same for a request over HTTP, which must also be meant for this server.
func (s *Server) mayControl(r *http.Request) error {
	if err := s.config.checkSource(r); err != nil {
		return err
	}
	return s.config.mayControl(r.Header.Values("Authorization"))
}

// mayControl is the same for a call over gRPC.
func (g *grpcService) mayControl(ctx context.Context) error {
	return g.s.config.mayControl(metadata.ValueFromIncomingContext(ctx, "authorization"))
}

// otherSites finds requests that a page of another site has a browser send. Config.Origins changes nothing here: pages
// of those origins read and infer.
var otherSites = http.NewCrossOriginProtection()

// checkSource returns an error for a request that changes something and was not meant for this server: one that a page
// of another site has a browser send, or one for a host name that is not this server's. A site can have its own name
// resolve to this machine, so that a browser takes its pages and this server for one.
func (c *Config) checkSource(r *http.Request) error {
	if err := otherSites.Check(r); err != nil {
		return oip.Errorf(oip.Forbidden, "Origin", "is that of another site, which may change nothing here")
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	own, err := os.Hostname()
	switch {
	case net.ParseIP(strings.Trim(host, "[]")) != nil, host == "localhost", err == nil && strings.EqualFold(host, own),
		slices.ContainsFunc(c.Hosts, func(h string) bool { return strings.EqualFold(h, host) }):
		return nil
	}
	return oip.Errorf(oip.Forbidden, "Host", "%.100q is no name of this server: use its address, or list the name in "+
		"server.hosts", host)
}

// protected answers requests that change something and were not meant for this server with 403.
func (c *Config) protected(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			if err := c.checkSource(r); err != nil {
				writeError(w, http.StatusForbidden, err.Error())
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}
