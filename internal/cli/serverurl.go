package cli

import (
	"net/http"
	"strings"
)

// serverURL is the base of a server's paths over HTTP for an address as users write it: HOST:PORT, with http:// or
// https:// before it, with a slash behind it.
func serverURL(address string) string {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	return strings.TrimRight(address, "/")
}

// authorize shows a caller's key to a server, where there is one.
func authorize(r *http.Request, token string) {
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
}
