package config

import (
	"strings"
	"testing"
)

func TestEndpointsOfTraces(t *testing.T) {
	for endpoint, wrong := range map[string]bool{
		"http://localhost:4318": false, "https://collector.example": false, "https://c.example/v1/traces": false,
		"grpc://localhost:4317": false, "grpcs://c.example:4317": false, "grpc://localhost": true,
		"grpc://localhost:1/x": true, "localhost:4317": true, "ftp://a:1": true, "http://": true,
		"http://user:secret@h:1": true, "http://h:1?a=b": true,
	} {
		c := &checker{f: &File{}, bad: map[string]bool{}}
		c.tracing(&Tracing{Endpoint: endpoint, Sample: 1})
		if got := c.err() != nil; got != wrong {
			t.Errorf("%s: %v", endpoint, c.err())
		}
	}
	c := &checker{f: &File{}, bad: map[string]bool{}}
	c.settings(&Tracing{Endpoint: "http://h:1", Sample: 2})
	if err := c.err(); err == nil || !strings.Contains(err.Error(), "0 to 1") {
		t.Error(c.err())
	}
}
