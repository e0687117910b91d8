package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/schema"
)

var update = flag.Bool("update", false, "write the OpenAPI documents anew")

// operation is a call that a server answers, in the documents and in the test of them.
type operation struct {
	method, path, about string
	query               []string // parameters behind the path
	body                any      // what is sent: a reflect.Type or a schema.Schema; nil for nothing
	// answers are the bodies by status, as body; a text is the content type of an answer that is no JSON.
	answers map[int]any

	// ask is the path with its names filled in, sent what is sent, in the test; status is what comes back, 0 for 200.
	ask, sent string
	status    int
	header    []string
	also      []string // methods of another operation whose path is the same to the server
}

// document is an OpenAPI document of what an address answers.
type document struct {
	file, title, about, server string
	operations                 []operation
	pages                      []string // patterns that answer pages and pictures, which the document leaves out
	token                      string   // that the test shows
}

var wildcard = regexp.MustCompile(`\{([a-z]+)\}`)

// text writes the document.
func (d *document) text(t *testing.T, m *schema.Maker) string {
	t.Helper()
	paths := schema.Schema{}
	seen := map[any]bool{}
	for k := range d.operations {
		o := &d.operations[k]
		at, _ := paths[o.path].(schema.Schema)
		if at == nil {
			at = schema.Schema{}
			paths[o.path] = at
		}
		x := o.described(m)
		if id := x["operationId"]; seen[id] {
			t.Errorf("%s has two operations %s", d.file, id)
		} else {
			seen[id] = true
		}
		at[strings.ToLower(o.method)] = x
	}
	text, err := schema.Text(schema.Schema{
		"openapi": "3.1.0", "paths": paths,
		"info": schema.Schema{
			"title": d.title, "version": "1", "description": d.about,
			"license": schema.Schema{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers": []any{schema.Schema{"url": d.server}},
		"components": schema.Schema{"schemas": m.Defs, "securitySchemes": schema.Schema{
			"token": schema.Schema{"type": "http", "scheme": "bearer"},
			"key":   schema.Schema{"type": "apiKey", "in": "header", "name": "X-API-Key"},
		}},
		"security": []any{schema.Schema{}, schema.Schema{"token": []any{}}, schema.Schema{"key": []any{}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// described is the operation in the document.
func (o *operation) described(m *schema.Maker) schema.Schema {
	words := strings.FieldsFunc(o.path, func(r rune) bool { return strings.ContainsRune("/{}:-_", r) })
	out := schema.Schema{
		"summary": o.about, "operationId": strings.Join(append([]string{strings.ToLower(o.method)}, words...), "-"),
	}
	var parameters []any
	for _, found := range wildcard.FindAllStringSubmatch(o.path, -1) {
		parameters = append(parameters, schema.Schema{
			"name": found[1], "in": "path", "required": true, "schema": schema.Schema{"type": "string"},
		})
	}
	for _, name := range o.query {
		parameters = append(parameters, schema.Schema{
			"name": name, "in": "query", "schema": schema.Schema{"type": "string"},
		})
	}
	if parameters != nil {
		out["parameters"] = parameters
	}
	if o.body != nil {
		out["requestBody"] = schema.Schema{"content": content(m, o.body)}
	}
	answers := schema.Schema{"default": schema.Schema{
		"description": "what is wrong", "content": content(m, reflect.TypeFor[problem]()),
	}}
	for status, body := range o.answers {
		answer := schema.Schema{"description": o.about}
		if body != nil {
			answer["content"] = content(m, body)
		}
		answers[strconv.Itoa(status)] = answer
	}
	out["responses"] = answers
	return out
}

// problem is the answer to what is wrong.
type problem struct {
	Error string `json:"error"`
}

func content(m *schema.Maker, body any) schema.Schema {
	switch x := body.(type) {
	case string:
		return schema.Schema{x: schema.Schema{"schema": schema.Schema{"type": "string"}}}
	case reflect.Type:
		return schema.Schema{"application/json": schema.Schema{"schema": m.Of(x)}}
	}
	return schema.Schema{"application/json": schema.Schema{"schema": body}}
}

// object is an object with these members, by their types.
func object(m *schema.Maker, members map[string]reflect.Type) schema.Schema {
	properties, required := schema.Schema{}, slices.Sorted(maps.Keys(members))
	for _, name := range required {
		properties[name] = m.Of(members[name])
	}
	return schema.Schema{"type": "object", "properties": properties, "required": required}
}

// checkPatterns compares the document with what the address serves.
func (d *document) checkPatterns(t *testing.T, patterns []string) {
	t.Helper()
	documented := map[string]bool{}
	for k := range d.operations {
		o := &d.operations[k]
		path, _, _ := strings.Cut(o.path, ":") // a verb of v1 is a part of its segment
		documented[path], documented[o.method+" "+path] = true, true
	}
	served := map[string]bool{}
	for _, p := range patterns {
		p = strings.TrimSuffix(p, "{$}")
		method, path, ok := strings.Cut(p, " ")
		if !ok {
			path = p
		}
		served[p], served[path] = true, true
		if ok {
			served[method+" "+path] = true
		}
		if !documented[p] && !slices.Contains(d.pages, p) {
			t.Errorf("%s lacks %s, which is served", d.file, p)
		}
	}
	for k := range d.operations {
		path, _, _ := strings.Cut(d.operations[k].path, ":")
		if !served[path] {
			t.Errorf("%s has %s, which is not served", d.file, path)
		}
	}
}

// checkAnswers sends every request of the document to a server, and compares the answers with it.
func (d *document) checkAnswers(t *testing.T, text, base string) {
	t.Helper()
	for k := range d.operations {
		o := &d.operations[k]
		at := fmt.Sprintf("#/paths/%s/%s", strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").
			Replace(o.path), strings.ToLower(o.method))
		what := o.method + " " + o.ask
		if o.body != nil && o.sent != "" {
			if c, err := schema.Compile([]byte(text), at+"/requestBody/content/application~1json/schema"); err != nil {
				t.Errorf("%s: %v", what, err)
			} else if err := c.JSON([]byte(o.sent)); err != nil {
				t.Errorf("%s is sent %s: %v", what, o.sent, err)
			}
		}
		status, kind, body := d.send(t, base, o)
		if want := cmp.Or(o.status, http.StatusOK); status != want {
			t.Errorf("%s: %d %.300s, want %d", what, status, body, want)
			continue
		}
		answer, there := o.answers[status]
		where := strconv.Itoa(status)
		if !there {
			answer, where = reflect.TypeFor[problem](), "default"
		}
		if want, ok := answer.(string); ok {
			if !strings.HasPrefix(kind, want) {
				t.Errorf("%s answers %s, want %s", what, kind, want)
			}
			continue
		}
		if answer == nil || o.method == "HEAD" {
			continue
		}
		c, err := schema.Compile([]byte(text), at+"/responses/"+where+"/content/application~1json/schema")
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if err := c.JSON(body); err != nil || !strings.HasPrefix(kind, "application/json") {
			t.Errorf("%s: %s: %.500s\n%v", what, kind, body, err)
		}
	}
}

// send sends a request and reads its answer, or the beginning of one that has no end.
func (d *document) send(t *testing.T, base string, o *operation) (status int, kind string, body []byte) {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), 5*time.Minute)
	defer done()
	r, err := http.NewRequestWithContext(ctx, o.method, base+o.ask, strings.NewReader(o.sent))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if d.token != "" {
		r.Header.Set("Authorization", "Bearer "+d.token)
	}
	for k := 0; k < len(o.header); k += 2 {
		r.Header.Set(o.header[k], o.header[k+1])
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if kind = answer.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/event-stream") {
		return answer.StatusCode, kind, nil
	}
	if body, err = io.ReadAll(answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, kind, body
}

// checkMethods asks every path by the methods that the document does not have.
func (d *document) checkMethods(t *testing.T, base string) {
	t.Helper()
	has := map[string]bool{}
	for k := range d.operations {
		has[d.operations[k].method+d.operations[k].path] = true
	}
	for k := range d.operations {
		o := &d.operations[k]
		path, _, _ := strings.Cut(o.ask, "?")
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH"} {
			if has[method+o.path] || method == "GET" && has["HEAD"+o.path] || slices.Contains(o.also, method) {
				continue
			}
			status, _, body := d.send(t, base, &operation{method: method, ask: path, header: o.header})
			if status != http.StatusMethodNotAllowed && status != http.StatusNotFound {
				t.Errorf("%s lacks %s %s, which answers %d %.100s", d.file, method, o.path, status, body)
			}
		}
	}
}

const documentedWorld = `
version: 1
store: data
device_types: [{name: d, price_per_hour: 1, cores: 2}]
workers: [{name: w, count: 2, backend: {kind: fake, latency: 1ms}}]
telemetry: {history: history.db}
server: {not_ready: 0s, http: "127.0.0.1:0", grpc: "off", admin: "127.0.0.1:0", shared_memory: /, public_metrics: true}
apps:
  - name: app
    slo: {latency: 5s}
    late: serve-late
    demand: 10
    inputs: [{name: x, datatype: FP32, shape: [-1, 2]}]
    variants: [{name: big, accuracy: 0.9, max_batch: 16}, {name: small, accuracy: 0.7, max_batch: 16}]
`

// maker describes the types that answers are made of.
func maker(t *testing.T) *schema.Maker {
	t.Helper()
	var files []string
	for _, pattern := range []string{
		"../functions/api.go", "*.go", "../questions/*.go", "../*.go", "../../api/dashboard/*.go",
		"../../api/server/*.go", "../../measure/board/*.go", "../../measure/steps/*.go",
		"../../../serving/report/*.go",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, slices.DeleteFunc(found, func(name string) bool {
			return strings.HasSuffix(name, "_test.go")
		})...)
	}
	return &schema.Maker{Tag: "json", Refs: "#/components/schemas/", Comments: schema.Comments(t, files...)}
}

// The OpenAPI documents have every path and method that a server answers and no other, and its real answers fit.
func TestOpenAPI(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic, 2).Write(path); err != nil {
		t.Fatal(err)
	}
	model, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(model)
	s := running(t, documentedWorld, Options{})
	token, err := os.ReadFile(s.planned.File().Path("data/admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	public, admin := s.front.Patterns()
	m1, m2 := maker(t), maker(t)
	for _, x := range []struct {
		maker    *schema.Maker
		of       *document
		patterns []string
		address  string
	}{
		{m1, publicDocument(m1), public, s.front.HTTPAddr()},
		{m2, adminDocument(m2, hex.EncodeToString(sum[:]), string(model), strings.TrimSpace(string(token))), admin,
			s.front.AdminAddr()},
	} {
		text := x.of.text(t, x.maker)
		if *update {
			if err := os.WriteFile(x.of.file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if written, err := os.ReadFile(x.of.file); err != nil || string(written) != text {
			t.Errorf("%s is not up to date (go test ./internal/host/server -run OpenAPI -update writes it anew): %v",
				x.of.file, err)
		}
		x.of.checkPatterns(t, x.patterns)
		x.of.checkAnswers(t, text, "http://"+x.address)
		x.of.checkMethods(t, "http://"+x.address)
	}
}
