package loadgen

import (
	"crypto/tls"
	"fmt"
	"strings"
)

// Dial returns a Target for an address with a scheme: grpc://HOST:PORT, grpcs://, http:// or https://. An address
// without a scheme means gRPC. For connections see DialGRPC and DialHTTP. It opens no connection yet.
func Dial(address string, connections int) (Target, error) {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		scheme, rest = "grpc", address
	}
	switch scheme {
	case "grpc", "grpcs":
		rest = strings.TrimSuffix(rest, "/")
		if rest == "" || strings.Contains(rest, "/") {
			return nil, fmt.Errorf("address %q: want %s://HOST:PORT", address, scheme)
		}
		var config *tls.Config
		if scheme == "grpcs" {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		return DialGRPC(rest, connections, config)
	case "http", "https":
		return DialHTTP(address, connections, nil)
	}
	return nil, fmt.Errorf("address %q: unknown scheme %q, want grpc, grpcs, http or https", address, scheme)
}
