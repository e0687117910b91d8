package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostPacked is the most that the page may take on the wire, in bytes.
const mostPacked = 300 << 10

// The built page is that of the sources beside it.
func TestBuiltFromTheseSources(t *testing.T) {
	var list []string
	for _, top := range []string{"index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts",
		"public", "src"} {
		err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				list = append(list, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(list)
	all := sha256.New()
	for _, path := range list {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(all, "%x  %s\n", sha256.Sum256(data), filepath.ToSlash(path))
	}
	built, err := dist.ReadFile("dist/sources.sum")
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(all.Sum(nil)); got != strings.TrimSpace(string(built)) {
		t.Error("web/dist was built from other sources: run make web, and commit what it writes")
	}
}

// The page is small, asks nobody but its server, and its files are served compressed and kept.
func TestPage(t *testing.T) {
	h := Handler()
	get := func(path string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		for k := 0; k < len(header); k += 2 {
			r.Header.Set(header[k], header[k+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	page := get("/")
	if rule := page.Header().Get("Content-Security-Policy"); page.Code != http.StatusOK ||
		!strings.Contains(rule, "default-src 'none'") {
		t.Fatalf("%d %v", page.Code, page.Header())
	}
	total := 0
	for _, part := range strings.Split(page.Body.String(), `"`) {
		if !strings.HasPrefix(part, "/assets/") {
			continue
		}
		w := get(part, "Accept-Encoding", "gzip")
		if w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != "gzip" ||
			!strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", part, w.Code, w.Header())
		}
		total += w.Body.Len()
		if again := get(part, "If-None-Match", w.Header().Get("ETag")); again.Code != http.StatusNotModified {
			t.Errorf("%s: %d although it is as it was", part, again.Code)
		}
	}
	if total == 0 || total > mostPacked {
		t.Errorf("the page has %d bytes, want at most %d and some", total, mostPacked)
	}
	if w := get("/such"); w.Code != http.StatusNotFound {
		t.Errorf("what is not there: %d", w.Code)
	}
}

// Names and messages of strangers are texts to the page, never markup or programs.
func TestTextsAreNoMarkup(t *testing.T) {
	read := 0
	err := filepath.WalkDir("src", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		for _, way := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "InnerHTML", "document.write",
			"createContextualFragment", "DOMParser", "srcdoc", "eval(", "new Function"} {
			if strings.Contains(string(text), way) {
				t.Errorf("%s: %s makes markup or programs of texts", path, way)
			}
		}
		return nil
	})
	if err != nil || read < 10 {
		t.Errorf("%d sources were read: %v", read, err)
	}
}
