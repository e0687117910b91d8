package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/measure/loadgen"
)

// Every command that asks a server takes its address with a scheme and without, and with a slash behind it.
func TestAddressesOfServers(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v2/models/a":
			_, _ = w.Write([]byte(`{"inputs":[]}`))
		case "/v2/models/a/infer":
			_, _ = w.Write([]byte(`{"outputs":[]}`))
		case "/v1/functions/":
			_, _ = w.Write([]byte(`[]`))
		case "/api/v1/overview", "/api/v1/machines", "/debug/explain":
			_, _ = w.Write([]byte(`{}`))
		default:
			t.Errorf("asked for %s", r.URL.Path)
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	bare := strings.TrimPrefix(s.URL, "http://")
	t.Chdir(t.TempDir()) // without a sluice.yaml
	for _, address := range []string{bare, bare + "/", s.URL, s.URL + "/"} {
		for _, args := range [][]string{
			{"infer", "a", "--url", address}, {"explain", "7", "--server", address},
			{"list", "--admin", address}, {"top", "--once", "--server", address},
		} {
			if code, _, errs := sluice(t, args...); code != ExitOK {
				t.Errorf("%v: %d %s", args, code, errs)
			}
		}
		target := address
		if address == bare || address == bare+"/" {
			target = "grpc://" + address
		}
		c, err := loadgen.Dial(target, 1)
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		_ = c.Close()
	}
}
