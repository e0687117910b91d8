package server

import (
	"strings"
	"testing"
)

func TestHeadersOfACollector(t *testing.T) {
	got, err := parseHeaders("# for the collector\nAuthorization: Bearer a:b\n\n X-Key :v \n")
	if err != nil || len(got) != 2 || got["authorization"] != "Bearer a:b" || got["x-key"] != "v" {
		t.Errorf("%v, %v", got, err)
	}
	for _, wrong := range []string{"secret", "a b: secret", "a: secret\x00", ": secret"} {
		_, err := parseHeaders("ok: 1\n" + wrong)
		if err == nil || !strings.Contains(err.Error(), "line 2") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
