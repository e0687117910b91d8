package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestReload(t *testing.T) {
	answer, code := "", http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/reload" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s %s with %q", r.Method, r.URL, r.Header.Get("Authorization"))
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(answer))
	}))
	defer s.Close()
	t.Chdir(t.TempDir())
	t.Setenv("SLUICE_TOKEN", "secret")
	for _, c := range []struct {
		answer       string
		code, status int
		want         string
	}{
		{`{"apps":[{"app":"a","change":"added"},{"app":"b","change":"changed"}]}`, 200, ExitOK,
			"a: added\nb: changed\n"},
		{`{"apps":null}`, 200, ExitOK, "no app has changed\n"},
		{`{"apps":[{"app":"a","change":"added"},{"app":"b","change":"changed","error":"too slow"}]}`, 200, ExitFailed,
			"a: added\nb: not changed: too slow\n"},
		{`{"error":"server differs"}`, 400, ExitFailed, ""},
	} {
		answer, code = c.answer, c.code
		status, out, errs := sluice(t, "reload", "--admin", strings.TrimPrefix(s.URL, "http://"))
		if status != c.status || out != c.want || c.code != 200 && !strings.Contains(errs, "server differs") {
			t.Errorf("%s: %d %q %q, want %d %q", c.answer, status, out, errs, c.status, c.want)
		}
	}
	if status, out, _ := sluice(t, "reload", "--json", "--admin", "127.0.0.1:1"); status == ExitOK || out != "" {
		t.Errorf("without a server: %d %q", status, out)
	}
}
