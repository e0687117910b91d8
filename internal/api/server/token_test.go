package server

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "admin.token")
	first, err := Token(path)
	if err != nil || len(first) < minToken {
		t.Fatal(first, err)
	}
	if again, err := Token(path); err != nil || again != first {
		t.Errorf("%q, %v: want the token made before", again, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: want 0600", st.Mode(), err)
	}
	if other, err := Token(path + "2"); err != nil || other == first {
		t.Errorf("%q, %v: two servers have one token", other, err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Token(path); err == nil || !strings.Contains(err.Error(), "can be read by others") {
		t.Errorf("a token that others can read: %v", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("\ufeff"+first+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := Token(path); err != nil || again != first {
		t.Errorf("with a byte order mark: %q, %v", again, err)
	}
	for _, bad := range []string{"", "short", strings.Repeat("x", maxToken+1)} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Token(path); err == nil {
			t.Errorf("%q was taken as %q", bad, got)
		}
	}
}

// On the address of administration everybody reads, but for functions; changes need the token, if there is one.
func TestAdminEntry(t *testing.T) {
	for _, x := range []struct {
		token, method, path, header string
		want                        int
	}{
		{"", "PUT", "/v1/x", "", 200},
		{"", "PUT", "/prices", "", 200},
		{"0123456789abcdef", "PUT", "/prices", "", 401},
		{"0123456789abcdef", "GET", "/prices", "", 200},
		{"0123456789abcdef", "HEAD", "/metrics", "", 200},
		{"0123456789abcdef", "GET", "/v1/x", "", 401},
		{"0123456789abcdef", "PUT", "/prices", "Bearer 0123456789abcdef", 200},
		{"0123456789abcdef", "PUT", "/v1/x", "bearer 0123456789abcdef", 200},
		{"0123456789abcdef", "PUT", "/v1/x", "Bearer 0123456789abcde", 401},
		{"0123456789abcdef", "PUT", "/v1/x", "Bearer 0123456789abcdef0", 401},
		{"0123456789abcdef", "PUT", "/v1/x", "Basic 0123456789abcdef", 401},
		{"0123456789abcdef", "PUT", "/v1/x", "0123456789abcdef", 401},
		{"0123456789abcdef", "PUT", "/v1/x", "Bearer", 401},
	} {
		c, err := Config{Token: x.token}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(x.method, x.path, nil)
		if x.header != "" {
			r.Header.Set("Authorization", x.header)
		}
		w := httptest.NewRecorder()
		(&Server{config: c, records: &records{}}).adminEntry(
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != x.want {
			t.Errorf("%+v: %d", x, w.Code)
		}
		if w.Code == 401 && (x.token != "" && strings.Contains(w.Body.String(), x.token) ||
			w.Header().Get("WWW-Authenticate") == "") {
			t.Errorf("%+v: answered %q", x, w.Body)
		}
	}
}
