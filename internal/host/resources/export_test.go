package resources_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/resources"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

var update = flag.Bool("update", false, "write the golden files anew")

// shown is a list as the command prints it.
func shown(t *testing.T, l *resources.List) string {
	t.Helper()
	var b bytes.Buffer
	if err := l.Write(&b, ""); err != nil {
		t.Fatal(err)
	}
	for _, n := range l.Notes {
		fmt.Fprintf(&b, "# note: %s\n", n)
	}
	for _, x := range l.Left {
		fmt.Fprintf(&b, "# left out: %s\n", x)
	}
	return b.String()
}

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; see what changed with `go test ./internal/host/resources -update` and git diff. "+
			"Got:\n%s", path, got)
	}
}

// everything has one of all that a resource can say, and of what it cannot.
const everything = `
version: 1
device_types:
  - {name: Big_CPU, price_per_hour: 0.526, tenure: rented, cores: 8, memory: 16GiB, most: 40}
  - {name: gpu, price_per_hour: 1.25, cores: 4, memory: 24GiB, accelerators: 1}
  - {name: half, part: true, cores: 2, percent: 50, memory: 12GiB}
  - {name: unused}
workers:
  - {name: c, device_type: Big_CPU, count: 3, backend: {kind: fake, latency: 4ms, latency_per_item: 1ms}}
  - {name: g, device_type: gpu, count: 2, backend: {kind: fake, latency: 1ms}}
profiles: [profile.json]
system: {name: sluice, options: {trials: "8"}, replan: 20s, slack: 1ms}
server: {http: ":9000"}
apps:
  - name: Faces
    slo: {latency: 50ms, percentile: 99.9}
    weight: 2
    late: serve-late
    accuracy_floor: 0.5
    accuracy_target: 0.75
    demand: 12.5
    queue_limit: 50
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    outputs: [{name: y, datatype: FP32, shape: [-1, 2]}]
    variants:
      - {name: big, accuracy: 0.9, max_batch: 16, memory: 100MiB}
      - {name: small, accuracy: 0.7, max_batch: 32}
  - name: graph
    slo: {latency: 200ms}
    inputs: [{name: image, datatype: FP32, shape: [-1, 8]}]
    stages:
      - {name: find, variants: [{name: finder}], outputs: {out: boxes}, next: [{to: name, fan_out: 2.5, rows: boxes}]}
      - {name: name, variants: [{name: namer, item_memory: 1MiB}], inputs: {in: boxes}}
`

const measured = `{"version": 1, "created": "2026-01-02T03:04:05Z", "host": {"cpu": "a cpu", "cores": 8, "os": "linux"},
 "points": [
 {"variant":"big","device_type":"Big_CPU","batch":4,"concurrency":1,"samples":90,"mean_us":9000,"stddev_us":12,
  "p50_us":9000,"p90_us":9100,"p95_us":9200,"p99_us":9300,"interpolated":false},
 {"variant":"big","device_type":"Big_CPU","batch":1,"concurrency":1,"samples":100,"mean_us":5000.5,"stddev_us":10,
  "p50_us":5000,"p90_us":5100,"p95_us":5200,"p99_us":5300,"interpolated":false},
 {"variant":"big","device_type":"Big_CPU","batch":1,"concurrency":2,"samples":100,"mean_us":7000,"stddev_us":10,
  "p50_us":7000,"p90_us":7100,"p95_us":7200,"p99_us":7300,"interpolated":false},
 {"variant":"finder","device_type":"half","batch":1,"concurrency":1,"samples":100,"mean_us":3000,"stddev_us":0,
  "p50_us":3000,"p90_us":3000,"p95_us":3000,"p99_us":3000,"interpolated":false}],
 "loads": [{"variant":"big","device_type":"Big_CPU","load_ms":120}]}`

func TestExportSaysAllThatResourcesCan(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sluice.yaml"), everything)
	write(t, filepath.Join(dir, "profile.json"), measured)
	golden(t, "everything.yaml", shown(t, export(t, filepath.Join(dir, "sluice.yaml"), resources.Exporting{
		Namespace: "prod", Models: "pvc://models/a", Fleet: "edge"})))
}

// callers are known by all that a server knows them by, and some of it cannot be said.
const callers = `
version: 1
device_types: [{name: d}]
workers: [{name: w, backend: {kind: fake, latency: 1ms}}]
server: {tls: {cert: server.pem, key: server.key, client_ca: clients.pem, client_optional: true, admin: true}}
access:
  keys: access.keys
  certificates: [{name: till.example, tenant: shop, roles: [infer]}, {name: "spiffe://x/lab", roles: [look, infer]}]
  jwt: {issuer: "https://id.example", audience: sluice, %s, tenant_claim: tenant}
  anonymous: [look, deploy]
  audit: audit.jsonl
  log: access.jsonl
tenants:
  - {name: shop, weight: 2, rate: 200, concurrency: 64, timeout: 2s}
  - {name: default, weight: 0.5, rate: 2.5}
apps: [{name: a, slo: {latency: 50ms}, variants: [{name: v}]}]
`

// Files become Secrets and ConfigMaps, whose names are said with how to make them; no file is read.
func TestExportOfCallers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.yaml")
	write(t, file, fmt.Sprintf(callers, "key_file: jwks.json"))
	got := shown(t, export(t, file, resources.Exporting{Fleet: "edge", Namespace: "prod"}))
	golden(t, "callers.yaml", strings.ReplaceAll(got, dir, "/etc/sluice"))
	write(t, file, fmt.Sprintf(callers, `key_url: "http://localhost:1/jwks"`))
	if got := shown(t, export(t, file, resources.Exporting{})); !strings.Contains(got, "over https alone") ||
		strings.Contains(got, "jwt:\n") {
		t.Errorf("keys that are fetched in plain text: %s", got)
	}
	alone := "access: {anonymous: [look]}\n" + strings.Split(callers, "server:")[0] + "apps:" +
		strings.Split(callers, "apps:")[1]
	write(t, file, alone)
	if got := shown(t, export(t, file, resources.Exporting{})); !strings.Contains(got, "access of a Fleet needs keys") {
		t.Errorf("access of nobody: %s", got)
	}
}

func TestExportOfExamples(t *testing.T) {
	for _, name := range []string{"fleet", "remote"} {
		golden(t, name+".yaml", shown(t, export(t, filepath.Join("..", "..", "..", "examples", name+".yaml"),
			resources.Exporting{})))
	}
}

// A model in a repository is named by its folder, or with its digest where a folder will not do.
func TestExportNamesModels(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "models", "a b", "3", "model.onnx")
	if err := onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic, 3).Write(file); err != nil {
		t.Fatal(err)
	}
	const text = `
version: 1
device_types: [{name: d}]
workers: [{name: w}]
models: {repository: models}
apps: [{name: a, slo: {latency: 50ms}, variants: [{name: v, model: a b%s}]}]
`
	plain, pinned := filepath.Join(dir, "plain.yaml"), filepath.Join(dir, "pinned.yaml")
	write(t, plain, fmt.Sprintf(text, ""))
	write(t, pinned, fmt.Sprintf(text, `, version: "3"`))
	for _, c := range []struct{ name, file, models, want string }{
		{"the folder of the repository", plain, "", "uri: file://" + dir + "/models/a%20b\n"},
		{"a claim", plain, "pvc://claim/all/", "uri: pvc://claim/all/a%20b\n"},
		{"https needs a digest", plain, "https://h/m", "uri: https://h/m/a%20b/3/model.onnx\n        sha256: "},
		{"a version that is asked for", pinned, "s3://bucket", "uri: s3://bucket/a%20b/3/model.onnx\n        sha256: "},
	} {
		if got := shown(t, export(t, c.file, resources.Exporting{Models: c.models})); !strings.Contains(got, c.want) {
			t.Errorf("%s: lacks %q:\n%s", c.name, c.want, got)
		}
	}
	write(t, filepath.Join(filepath.Dir(file), "weights.bin"), "w")
	l := export(t, pinned, resources.Exporting{Models: "s3://bucket"})
	if got := shown(t, l); len(l.Left) != 2 || !strings.Contains(got, "pack them into an archive") ||
		strings.Contains(got, "InferenceApp\n") {
		t.Errorf("a version of several files: %s", got)
	}
}

func TestExportRefuses(t *testing.T) {
	path := filepath.Join("..", "..", "..", "examples", "fleet.yaml")
	o, err := host.Open(path, host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		how  resources.Exporting
		want string
	}{
		{resources.Exporting{Models: "gs://bucket"}, `not "gs://bucket"`},
		{resources.Exporting{Models: "https://user:secret@host/x"}, "models are below"},
		{resources.Exporting{Models: "models"}, `not "models"`},
		{resources.Exporting{Fleet: "My Fleet"}, `the fleet cannot be called "My Fleet"`},
		{resources.Exporting{Namespace: "-"}, `the namespace cannot be called "-"`},
		{resources.Exporting{Dispatchers: 65}, "1 to 64 dispatchers, not 65"},
	} {
		_, err := resources.Export(o, c.how)
		if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.how, err, c.want)
		}
	}
}

func export(t *testing.T, path string, how resources.Exporting) *resources.List {
	t.Helper()
	o, err := host.Open(path, host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := resources.Export(o, how)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
