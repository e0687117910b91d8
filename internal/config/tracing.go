package config

import (
	"net/url"
	"slices"
)

// tracing checks where traces go.
func (c *checker) tracing(t *Tracing) {
	const path = "server.tracing"
	if t.Endpoint == "" {
		for _, key := range []string{".sample", ".headers"} {
			c.need(!c.f.has(path+key), path+key, "has no effect without an endpoint: give server.tracing.endpoint")
		}
		return
	}
	u, err := url.Parse(t.Endpoint)
	overGRPC := err == nil && (u.Scheme == "grpc" || u.Scheme == "grpcs")
	c.need(err == nil && slices.Contains([]string{"http", "https", "grpc", "grpcs"}, u.Scheme) && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == "" && (!overGRPC || u.Port() != "" && u.Path == ""),
		path+".endpoint", "is %q, want http://HOST:PORT or https:// for OTLP over HTTP, grpc://HOST:PORT or grpcs:// "+
			"for OTLP over gRPC", t.Endpoint)
}
