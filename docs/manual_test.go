package docs

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// Every document is a page whose links to other documents lead to pages, and words are found where they stand.
func TestManual(t *testing.T) {
	if len(documents()) < 20 {
		t.Fatalf("%d documents", len(documents()))
	}
	links := regexp.MustCompile(`href="(/docs/[^"#]*|[a-z][a-zA-Z0-9_/-]*)(?:#[^"]*)?"`)
	for _, d := range documents() {
		w := get(Prefix + d.name)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "<main><h1") {
			t.Errorf("%s: %d", d.name, w.Code)
		}
		for _, m := range links.FindAllStringSubmatch(w.Body.String(), -1) {
			to := m[1]
			if !strings.HasPrefix(to, "/") {
				to = Prefix + d.name[:strings.LastIndex(d.name, "/")+1] + to
			}
			if got := get(to); got.Code != http.StatusOK {
				t.Errorf("%s leads to %s, which is not there", d.name, to)
			}
		}
	}
	// The index leads to every guide, and is what one sees first.
	index := get(Prefix).Body.String()
	_, index, _ = strings.Cut(index, "<main>")
	for _, d := range documents() {
		if !strings.Contains(d.name, "/") && d.name != "README" && !strings.Contains(index, `href="`+d.name+`"`) {
			t.Errorf("docs/README.md does not lead to %s.md", d.name)
		}
	}
	if s := get(Prefix + "?q=telemetry.history").Body.String(); !strings.Contains(s, `<h3><a href="/docs/dashboard">`) {
		t.Errorf("what is in the document is not found: %s", s)
	}
	if s := get(Prefix + "?q=%3Cscript%3E").Body.String(); strings.Contains(s, "<script>") {
		t.Error("the question comes back as a program")
	}
	if w := get(Prefix + "such"); w.Code != http.StatusNotFound {
		t.Errorf("what is not there: %d", w.Code)
	}
	if w := get(Prefix + "images/demo.png"); w.Code != http.StatusOK || w.Header().Get("Content-Type") != "image/png" {
		t.Errorf("a picture: %d %v", w.Code, w.Header())
	}
}
