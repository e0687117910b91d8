package server

import (
	"net/http"
	"slices"

	"github.com/sluice-serving/sluice/internal/api/oip"
)

// anyOrigin allows pages of every origin.
const anyOrigin = "*"

// allowsOrigin reports whether pages of an origin may call; "" is no page.
func (c *Config) allowsOrigin(origin string) bool {
	return origin != "" && (slices.Contains(c.Origins, origin) || slices.Contains(c.Origins, anyOrigin))
}

// allowOrigins lets pages of the configured origins call (CORS, the Fetch standard). Without origins next stands alone.
// Such pages read and infer; what changes something is refused to them (checkSource).
func (s *Server) allowOrigins(next http.Handler) http.Handler {
	if len(s.config.Origins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		h := w.Header()
		h.Add("Vary", "Origin")
		if !s.config.allowsOrigin(origin) {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", oip.HeaderLength+", Retry-After, Content-Encoding, "+
			quotaLimit+", "+quotaRemaining+", "+quotaReset)
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Methods", "GET, POST")
		h.Set("Access-Control-Allow-Headers", "Content-Type, Content-Encoding, Accept-Encoding, "+
			"Authorization, X-API-Key, "+oip.HeaderLength+", "+oip.HeaderTimeout)
		h.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
	})
}
