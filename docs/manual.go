// Package docs has the documents of this folder in the program, and shows them in a browser with search. `make site`
// makes a site of them.
package docs

import (
	"bytes"
	"embed"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

//go:embed *.md designs/*.md papers/*.md images/*
var files embed.FS

//go:embed schema/*.json
var schemas embed.FS

// Schemas are the names of the files that have a schema.
func Schemas() []string { return []string{"sluice", "workload", "function"} }

// Schema returns the JSON Schema of a kind of file, one of Schemas.
func Schema(name string) ([]byte, error) { return schemas.ReadFile("schema/" + name + ".json") }

// Prefix is the path that Handler answers below.
const Prefix = "/docs/"

// policy is the Content-Security-Policy of the documents: they hold no program and load nothing from elsewhere.
const policy = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; " +
	"frame-ancestors 'none'"

const style = `:root{color-scheme:light dark;--t:#1b1f24;--b:#fff;--m:#57606a;--l:#d0d7de;--a:#0061a4;--c:#f6f8fa}
@media(prefers-color-scheme:dark){:root{--t:#e6edf3;--b:#0d1117;--m:#a0aab4;--l:#30363d;--a:#6cb6ff;--c:#161b22}}
body{margin:0;font:16px/1.6 system-ui,sans-serif;color:var(--t);background:var(--b)}a{color:var(--a)}
.page{display:grid;grid-template-columns:230px minmax(0,820px);gap:40px;max-width:1150px;margin:0 auto;padding:20px}
nav{font-size:14px}nav ul{list-style:none;padding:0}nav h2{font-size:13px;color:var(--m);margin:18px 0 4px}
input{font:inherit;width:100%;box-sizing:border-box;padding:5px 8px;border:1px solid var(--l);border-radius:6px;
background:var(--c);color:var(--t)}pre,code{background:var(--c);border-radius:4px;font-size:14px}code{padding:1px 4px}
pre{padding:12px;overflow-x:auto;border:1px solid var(--l)}pre code{padding:0}img{max-width:100%}
table{border-collapse:collapse;display:block;overflow-x:auto;font-size:15px}td,th{border:1px solid var(--l);
padding:5px 10px;text-align:left;vertical-align:top}p.from{color:var(--m);font-size:14px}
@media(max-width:800px){.page{grid-template-columns:minmax(0,1fr)}}`

// document is a page.
type document struct {
	name, title string // name is its path without an extension
	source      string
	body        []byte // HTML
}

// documents are all pages, rendered once, when the first is asked for.
var documents = sync.OnceValue(func() (out []document) {
	md := goldmark.New(goldmark.WithExtensions(extension.GFM),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	_ = fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		source, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		d := document{name: strings.TrimSuffix(name, ".md"), title: name, source: string(source)}
		if first, _, ok := strings.Cut(d.source, "\n"); ok && strings.HasPrefix(first, "# ") {
			d.title = first[2:]
		}
		var b bytes.Buffer
		if err := md.Convert(source, &b); err != nil {
			return err
		}
		up := strings.Repeat("../", 1+strings.Count(name, "/"))
		body := bytes.ReplaceAll(b.Bytes(), []byte(`href="`+up), []byte(`href="`+repository))
		d.body = localLinks.ReplaceAll(body, []byte(`href="$1$2"`))
		out = append(out, d)
		return nil
	}) // embedded files can be read
	return out
})

// repository is where files beside the documents can be read.
const repository = "https://github.com/sluice-serving/sluice/blob/main/"

// localLinks are links to other documents: the pages have no extension.
var localLinks = regexp.MustCompile(`href="([a-zA-Z0-9_./-]+)\.md(#[^"]*)?"`)

// Handler shows the documents below Prefix. ?q=WORDS searches them.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "use GET here", http.StatusMethodNotAllowed)
			return
		}
		name := strings.TrimPrefix(path.Clean(r.URL.Path), strings.TrimSuffix(Prefix, "/"))
		name = strings.TrimPrefix(name, "/")
		switch q := strings.TrimSpace(r.URL.Query().Get("q")); {
		case name == "style.css":
			h.Set("Content-Type", "text/css; charset=utf-8")
			_, _ = w.Write([]byte(style))
		case strings.HasPrefix(name, "images/"):
			http.ServeFileFS(w, r, files, name)
		case q != "":
			show(w, "Search: "+q, found(q), q)
		default:
			if name == "" {
				name = "README"
			}
			at := slices.IndexFunc(documents(), func(d document) bool { return d.name == name })
			if at < 0 {
				w.WriteHeader(http.StatusNotFound)
				show(w, "Not found", []byte("<h1>Not found</h1><p>There is no such document.</p>"), "")
				return
			}
			show(w, documents()[at].title, documents()[at].body, "")
		}
	})
}

// show writes a page around a body.
func show(w http.ResponseWriter, title string, body []byte, q string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" `+
		`content="width=device-width, initial-scale=1"><title>%s · sluice</title><link rel="stylesheet" `+
		`href="/docs/style.css"></head><body><div class="page"><nav aria-label="Documents">`+
		`<p><a href="/">Dashboard</a></p><form action="/docs/" role="search"><input name="q" type="search" `+
		`aria-label="Search the documents" `+
		`placeholder="Search" value="%s"></form>%s</nav><main>%s</main></div></body></html>`,
		html.EscapeString(title), html.EscapeString(q), contents(), body)
}

// contents lists all documents by folder.
func contents() []byte {
	var b bytes.Buffer
	folder := "-"
	for _, d := range documents() {
		if f := path.Dir(d.name); f != folder {
			if folder != "-" {
				b.WriteString("</ul>")
			}
			folder = f
			heading := map[string]string{".": "Guides and reference", "designs": "Decisions", "papers": "The papers"}[f]
			fmt.Fprintf(&b, "<h2>%s</h2><ul>", heading)
		}
		fmt.Fprintf(&b, `<li><a href="/docs/%s">%s</a></li>`, d.name, html.EscapeString(d.title))
	}
	b.WriteString("</ul>")
	return b.Bytes()
}

const (
	mostWords = 8
	mostFound = 40
	mostLines = 3 // of a document
)

// found lists the documents that have all words, with the lines that have the first of them.
func found(q string) []byte {
	words := strings.Fields(strings.ToLower(q))
	words = words[:min(len(words), mostWords)]
	var b bytes.Buffer
	n := 0
	fmt.Fprintf(&b, "<h1>Search</h1>")
	for _, d := range documents() {
		text := strings.ToLower(d.source)
		if n == mostFound || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			continue
		}
		n++
		fmt.Fprintf(&b, `<h3><a href="/docs/%s">%s</a></h3>`, d.name, html.EscapeString(d.title))
		shown := 0
		for line := range strings.Lines(d.source) {
			if shown < mostLines && strings.Contains(strings.ToLower(line), words[0]) {
				shown++
				fmt.Fprintf(&b, `<p class="from">%s</p>`, html.EscapeString(strings.TrimSpace(line)))
			}
		}
	}
	if n == 0 {
		fmt.Fprintf(&b, "<p>No document has all of these words.</p>")
	}
	return b.Bytes()
}
