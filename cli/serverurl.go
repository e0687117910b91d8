package cli

import "strings"

// serverURL is the base of a server's paths over HTTP for an address as users write it: HOST:PORT, with http:// or
// https:// before it, with a slash behind it.
func serverURL(address string) string {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	return strings.TrimRight(address, "/")
}
