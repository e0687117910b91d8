package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed dist
var dist embed.FS

// policy is the Content-Security-Policy: the page loads and asks nothing but its own server. Charts set
// styles through the DOM, which needs no exception.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// asset is a file of the page.
type asset struct {
	kind, tag     string
	plain, packed []byte
}

// Handler serves the page. Every path that names no file gets the page itself, which finds its view in the path's
// fragment.
func Handler() http.Handler {
	assets := make(map[string]*asset)
	_ = fs.WalkDir(dist, "dist", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(name, ".sum") {
			return err
		}
		data, err := dist.ReadFile(name)
		if err != nil {
			return err
		}
		assets[strings.TrimPrefix(name, "dist/")] = newAsset(name, data)
		return nil
	}) // embedded files can be read
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
		if name == "" || name == "." {
			name = "index.html"
		}
		a := assets[name]
		if a == nil {
			http.NotFound(w, r)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "use GET here", http.StatusMethodNotAllowed)
			return
		}
		a.serve(w, r, strings.HasPrefix(name, "assets/"))
	})
}

func newAsset(name string, data []byte) *asset {
	sum := sha256.Sum256(data)
	a := &asset{kind: mime.TypeByExtension(path.Ext(name)), tag: `"` + hex.EncodeToString(sum[:12]) + `"`, plain: data}
	switch path.Ext(name) { // independent of the machine's table
	case ".js":
		a.kind = "text/javascript; charset=utf-8"
	case ".css":
		a.kind = "text/css; charset=utf-8"
	case ".html":
		a.kind = "text/html; charset=utf-8"
	case ".svg":
		a.kind = "image/svg+xml"
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a known level
	_, _ = z.Write(data)
	if z.Close() == nil && b.Len() < len(data) {
		a.packed = b.Bytes()
	}
	return a
}

// serve answers with the file. One whose name changes with its content is kept for good.
func (a *asset) serve(w http.ResponseWriter, r *http.Request, forever bool) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("ETag", a.tag)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if forever {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := a.plain
	if a.packed != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body = a.packed
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}
