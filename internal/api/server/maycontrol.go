package server

import (
	"context"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/api/oip"
)

// errControl is the error for clients that may not load and unload models or change settings.
var errControl = oip.Errorf(oip.Unauthenticated, "", "loading and unloading models, and changing settings, needs the "+
	"token of the server's admin_token file (Authorization: Bearer TOKEN), or server.model_control, which lets every "+
	"client do it")

// mayControl returns an error unless a caller has the role. Where it calls from plays no part: every caller behind a
// proxy on this machine calls from this machine.
func (c *Config) mayControl(ctx context.Context, role access.Roles) error {
	caller := callerOf(ctx)
	switch {
	case caller.May(role):
		return nil
	case caller == nil || caller.Roles == c.Gate.Open():
		return errControl
	}
	return oip.Errorf(oip.Forbidden, "", "%s may %s, and this needs %s", caller.Name, caller.Roles, role)
}

// mayControl is the same for a request over HTTP that loads or unloads models, which must also be meant for this
// server.
func (s *Server) mayControl(r *http.Request) error {
	if err := s.config.checkSource(r); err != nil {
		return err
	}
	return s.config.mayControl(r.Context(), access.Deploy)
}

// mayAdminister is mayControl for a request that changes settings.
func (s *Server) mayAdminister(r *http.Request) error {
	if err := s.config.checkSource(r); err != nil {
		return err
	}
	return s.config.mayControl(r.Context(), access.Administer)
}

// mayControl is the same for a call over gRPC.
func (g *grpcService) mayControl(ctx context.Context) error {
	return g.s.config.mayControl(ctx, access.Deploy)
}

// mayAdminister is mayControl for a call that changes settings.
func (g *grpcService) mayAdminister(ctx context.Context) error {
	return g.s.config.mayControl(ctx, access.Administer)
}

// otherSites finds requests that a page of another site has a browser send. Config.Origins changes nothing here: pages
// of those origins read and infer.
var otherSites = http.NewCrossOriginProtection()

// checkSource returns an error for a request that changes something and was not meant for this server: one that a page
// of another site has a browser send, or one for a host name that is not this server's.
func (c *Config) checkSource(r *http.Request) error {
	if err := otherSites.Check(r); err != nil {
		return oip.Errorf(oip.Forbidden, "Origin", "is that of another site, which may change nothing here")
	}
	return c.checkHost(r)
}

// checkHost returns an error for a request for a host name that is not this server's. A site can have its own name
// resolve to this machine, so that a browser takes its pages and this server for one and gives them the answers.
func (c *Config) checkHost(r *http.Request) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	switch {
	case net.ParseIP(strings.Trim(host, "[]")) != nil, host == "localhost", strings.HasSuffix(host, ".localhost"),
		slices.ContainsFunc(c.Hosts, func(h string) bool { return strings.EqualFold(h, host) }):
		return nil
	}
	if own, err := os.Hostname(); err == nil && strings.EqualFold(host, own) { // last: the system is asked
		return nil
	}
	return oip.Errorf(oip.Forbidden, "Host", "%.100q is no name of this server: use its address, or list the name in "+
		"server.hosts", host)
}

// refusing answers requests with 403 where check returns an error.
func refusing(check func(*http.Request) error, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := check(r); err != nil {
			writeError(w, http.StatusForbidden, err.Error())
			return
		}
		h.ServeHTTP(w, r)
	})
}

// protected refuses requests to the admin address that were not meant for this server.
func (c *Config) protected(h http.Handler) http.Handler {
	return refusing(func(r *http.Request) error {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return c.checkHost(r)
		}
		return c.checkSource(r)
	}, h)
}

// inPod is set by Kubernetes in every container. Proxies beside the server call it from the same machine there, by the
// names that clients use, and nobody browses.
const inPod = "KUBERNETES_SERVICE_HOST"

// shielded refuses requests that a page of another site has a browser send: those that a browser sends without asking,
// and those for another name of this machine. Who calls from elsewhere may know this server by any name, and TLS has
// names of its own.
func (c *Config) shielded(h http.Handler) http.Handler {
	anyHost := os.Getenv(inPod) != "" || slices.Contains(c.Hosts, anyOrigin)
	return refusing(func(r *http.Request) error {
		if origin := r.Header.Get("Origin"); !c.allowsOrigin(origin) && otherSites.Check(r) != nil {
			return oip.Errorf(oip.Forbidden, "Origin", "%.100q is another site: list it in server.origins if its "+
				"pages may infer", origin)
		}
		at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if ok && at.IP.IsLoopback() && r.TLS == nil && !anyHost {
			return c.checkHost(r)
		}
		return nil
	}, h)
}
