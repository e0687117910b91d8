package server

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/hosttest"
)

// Where callers have to say who they are, the page itself is for everybody, since a browser that opens it cannot say
// it; what it shows is for those who may look, and a question "what if" for those who may administer.
func TestWhoMayLookAtThePage(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	dir := t.TempDir()
	key, line, err := access.NewKey("viewer", "", access.Look, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(dir, "keys")
	if err := os.WriteFile(keys, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := running(t, hosttest.Fakes+"access: {keys: "+keys+"}\n", Options{GRPC: "off"})
	for _, c := range []struct {
		method, path, key string
		want              int
	}{
		{"GET", "/", "", http.StatusOK}, {"GET", "/icon.svg", "", http.StatusOK},
		{"GET", "/docs/dashboard", "", http.StatusOK}, {"GET", "/api/v1/overview", "", http.StatusUnauthorized},
		{"GET", "/api/v1/stream", "", http.StatusUnauthorized},
		{"GET", "/metrics", "", http.StatusUnauthorized}, {"GET", "/api/v1/overview", key, http.StatusOK},
		{"POST", "/api/v1/what-if", key, http.StatusForbidden}, {"POST", "/", "", http.StatusUnauthorized},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+s.AdminAddr()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.key != "" {
			r.Header.Set("Authorization", "Bearer "+c.key)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %s with key %q: %d, want %d", c.method, c.path, c.key, resp.StatusCode, c.want)
		}
	}
}
