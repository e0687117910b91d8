package test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// adding writes a version of a model that adds a number to its input, as one file that appears whole.
func adding(t *testing.T, repository, model string, version int, number float32) string {
	t.Helper()
	g := onnxmodel.NewGraph("adding").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 2).
		Initializer("number", []float32{number}, 1).Node("Add", []string{"x", "number"}, []string{"y"}).
		Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 2)
	dir := filepath.Join(repository, model, fmt.Sprint(version))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := g.Write(filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "model.onnx")); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "model.onnx")
}

// controlled starts a server of a repository, and returns its address.
func controlled(t *testing.T, repository string, args ...string) *server {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	s := serve(t, append([]string{
		repository, "--http", "127.0.0.1:0", "--grpc", "off", "--admin", "off", "--clients-control-models",
	}, args...)...)
	until(t, func() bool { return get(s.url()+"/v2/health/ready") == 200 })
	return s
}

// controls loads or unloads a model.
func controls(t *testing.T, base, model, verb, body string) {
	t.Helper()
	if code, got := postTo(t, base+"/v2/repository/models/"+model+"/"+verb, body); code != 200 {
		t.Fatalf("%s %s: %d %s", verb, model, code, got)
	}
}

// chained is the scheduling of an ensemble from one tensor to another, over models that take x and give y.
func chained(from, to string, steps []string) string {
	out := "ensemble_scheduling {\n"
	for k, s := range steps {
		next := fmt.Sprint("t", k)
		if k == len(steps)-1 {
			next = to
		}
		out += fmt.Sprintf("step { model_name: %q model_version: -1 input_map { key: \"x\" value: %q }\n"+
			"  output_map { key: \"y\" value: %q } }\n", s, from, next)
		from = next
	}
	return out + "}\n"
}

const onesToAdd = `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,1]}]}`

// added asks a model to add to one.
func added(t *testing.T, base, model string) string {
	t.Helper()
	code, got := postTo(t, base+"/v2/models/"+model+"/infer", onesToAdd)
	if code != 200 {
		return fmt.Sprintf("%d %s", code, got)
	}
	_, data, _ := strings.Cut(got, `"data":[`)
	first, _, _ := strings.Cut(data, ",")
	return first
}

// A file with apps says which further models of the repository are served from the start.
func TestModelsOfNoAppAreServedFromTheStart(t *testing.T) {
	needsONNX(t)
	for name, models := range map[string]string{
		"named": "control: explicit, load: [one, two, none]",
		"all":   `control: explicit, load: ["*"]`,
		"poll":  "control: poll, poll: 1h",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			dir := t.TempDir()
			adding(t, filepath.Join(dir, "models"), "one", 1, 1)
			adding(t, filepath.Join(dir, "models"), "two", 1, 2)
			path := filepath.Join(dir, "sluice.yaml")
			text := fmt.Sprintf(`version: 1
models: {repository: models, %s}
device_types: [{name: local, cores: 1}]
workers: [{name: here}]
server: {http: "127.0.0.1:0", grpc: "off", admin: "off"}
apps: [{name: mine, slo: {latency: 1s}, variants: [{model: one, accuracy: 1}]}]
`, models)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			base := serve(t, "-f", path).url()
			until(t, func() bool { return get(base+"/v2/models/two/ready") == 200 })
			if got := added(t, base, "two"); got != "3" {
				t.Errorf("a model that no app names: %s", got)
			}
		})
	}
}

// Under explicit control a server begins with the models that it is told. Others are loaded when a client asks, changed
// ones anew, and a new version that cannot be served leaves the old one in its place, which answers all the time.
func TestModelsAreLoadedWhenAsked(t *testing.T) {
	needsONNX(t)
	dir := t.TempDir()
	adding(t, dir, "one", 1, 1)
	adding(t, dir, "two", 1, 2)
	base := controlled(t, dir, "--model-control-mode", "explicit", "--load-model", "one").url()
	if got := added(t, base, "one"); got != "2" {
		t.Errorf("a model to begin with: %s", got)
	}
	for body, want := range map[string]string{
		`{"instances":[[1,2],[3,4]]}`: `{"predictions":[[2,3],[4,5]]}`,
		`{"inputs":{"x":[[1,2]]}}`:    `{"outputs":[[2,3]]}`,
	} {
		if code, got := postTo(t, base+"/v1/models/one/versions/1:predict", body); code != 200 || got != want {
			t.Errorf("%s by the protocol v1: %d %s, want %s", body, code, got, want)
		}
	}
	if got := added(t, base, "two"); !strings.HasPrefix(got, "404") {
		t.Errorf("a model that was not loaded: %s", got)
	}
	_, index := postTo(t, base+"/v2/repository/index", "")
	if !strings.Contains(index, `{"name":"one","version":"1","state":"READY"}`) ||
		!strings.Contains(index, `{"name":"two"}`) {
		t.Errorf("index: %s", index)
	}
	load := func(model, body string) (int, string) {
		return postTo(t, base+"/v2/repository/models/"+model+"/load", body)
	}
	if code, got := load("two", "{}"); code != 200 {
		t.Fatalf("load: %d %s", code, got)
	}
	if got := added(t, base, "two"); got != "3" {
		t.Errorf("a model that was loaded: %s", got)
	}
	if code, got := load("none", "{}"); code != 404 || !strings.Contains(got, "failed to load 'none'") {
		t.Errorf("a model that is not there: %d %s", code, got)
	}

	// A new version takes the place of the old one, which answers until then.
	stop, failed := make(chan struct{}), make(chan string, 1)
	var asked atomic.Int64
	go func() {
		defer close(failed)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if got := added(t, base, "two"); got != "3" && got != "11" {
				failed <- got
				return
			}
			asked.Add(1)
		}
	}()
	adding(t, dir, "two", 3, 10)
	if code, got := load("two", "{}"); code != 200 {
		t.Fatalf("load of a new version: %d %s", code, got)
	}
	close(stop)
	if got, ok := <-failed; ok {
		t.Errorf("while the new version was loaded: %s", got)
	}
	if got := added(t, base, "two"); got != "11" || asked.Load() == 0 {
		t.Errorf("the new version: %s after %d queries", got, asked.Load())
	}
	if code, got := bodyOf(t, base+"/v2/models/two"); code != 200 || !strings.Contains(got, `"versions":["3"]`) {
		t.Errorf("metadata: %d %s", code, got)
	}
	if err := os.WriteFile(filepath.Join(dir, "two", "3", "model.onnx"), []byte("no model"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, got := load("two", "{}"); code == 200 || !strings.Contains(got, "failed to load 'two'") {
		t.Errorf("load of a broken version: %d %s", code, got)
	}
	if got := added(t, base, "two"); got != "11" {
		t.Errorf("after the broken version: %s", got)
	}
	if code, got := postTo(t, base+"/v2/repository/models/two/unload", "{}"); code != 200 {
		t.Fatalf("unload: %d %s", code, got)
	}
	if got := added(t, base, "two"); !strings.HasPrefix(got, "503") {
		t.Errorf("an unloaded model: %s", got)
	}
}

// A model can be loaded with a configuration and with files that the client sends. Both count, and what the repository
// has is loaded again when nothing is sent.
func TestModelsAreLoadedAsGiven(t *testing.T) {
	needsONNX(t)
	dir, elsewhere := t.TempDir(), t.TempDir()
	adding(t, dir, "one", 1, 1)
	other, err := os.ReadFile(adding(t, elsewhere, "other", 1, 5))
	if err != nil {
		t.Fatal(err)
	}
	base := controlled(t, dir).url()
	load := func(body string) (int, string) { return postTo(t, base+"/v2/repository/models/one/load", body) }
	config := func() string {
		_, got := bodyOf(t, base+"/v2/models/one/config")
		return got
	}
	if code, got := load(`{"parameters":{"config":"{\"max_batch_size\":3}"}}`); code != 200 {
		t.Fatalf("with a configuration: %d %s", code, got)
	}
	if got := config(); !strings.Contains(got, `"max_batch_size":3`) {
		t.Errorf("the configuration does not count: %s", got)
	}
	if code, got := load(`{"parameters":{"config":"{\"max_batch_size\":-3}"}}`); code != 400 {
		t.Errorf("with a wrong configuration: %d %s", code, got)
	}
	file := func(at string) string {
		return fmt.Sprintf(`{"parameters":{"config":"{\"max_batch_size\":2}","file:%s":"%s"}}`, at,
			base64.StdEncoding.EncodeToString(other))
	}
	if code, got := load(file("../1/model.onnx")); code != 500 {
		t.Errorf("with a file outside: %d %s", code, got)
	}
	if code, got := load(file("7/model.onnx")); code != 200 {
		t.Fatalf("with a file: %d %s", code, got)
	}
	if got := added(t, base, "one"); got != "6" {
		t.Errorf("the file does not count: %s", got)
	}
	if code, got := bodyOf(t, base+"/v2/models/one"); code != 200 || !strings.Contains(got, `"versions":["7"]`) {
		t.Errorf("metadata: %d %s", code, got)
	}
	if code, got := load("{}"); code != 200 {
		t.Fatalf("as the repository has it: %d %s", code, got)
	}
	if got := added(t, base, "one"); got != "2" || strings.Contains(config(), `"max_batch_size":2`) {
		t.Errorf("as the repository has it: %s", got)
	}
}

// Under control by polling the repository says what is served: models that are added, changed and removed there.
func TestModelsFollowTheRepository(t *testing.T) {
	needsONNX(t)
	dir := t.TempDir()
	adding(t, dir, "one", 1, 1)
	base := controlled(t, dir, "--model-control-mode", "poll", "--repository-poll-secs", "0.1").url()
	adding(t, dir, "two", 1, 2)
	until(t, func() bool { return added(t, base, "two") == "3" })
	adding(t, dir, "one", 2, 4)
	until(t, func() bool { return added(t, base, "one") == "5" })
	if err := os.RemoveAll(filepath.Join(dir, "two")); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return strings.HasPrefix(added(t, base, "two"), "404") })
	if code, got := postTo(t, base+"/v2/repository/models/one/unload", "{}"); code != 503 ||
		!strings.Contains(got, "explicit model load / unload is not allowed if polling is enabled") {
		t.Errorf("unload: %d %s", code, got)
	}
}

// An ensemble is loaded with the models that it is made of, and they are unloaded with it if that is asked for.
func TestEnsemblesAreLoadedWithTheirMembers(t *testing.T) {
	needsONNX(t)
	dir := t.TempDir()
	adding(t, dir, "one", 1, 1)
	adding(t, dir, "two", 1, 2)
	if err := os.MkdirAll(filepath.Join(dir, "both", "1"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "both/config.pbtxt", `platform: "ensemble"
max_batch_size: 4
input [{name: "x" data_type: TYPE_FP32 dims: [2]}]
output [{name: "z" data_type: TYPE_FP32 dims: [2]}]
ensemble_scheduling {step [
  {model_name: "one" model_version: -1 input_map {key: "x" value: "x"} output_map {key: "y" value: "y"}},
  {model_name: "two" model_version: -1 input_map {key: "x" value: "y"} output_map {key: "y" value: "z"}}]}
`)
	base := controlled(t, dir, "--model-control-mode", "explicit").url()
	verb := func(verb, body string) { controls(t, base, "both", verb, body) }
	verb("load", "{}")
	for model, want := range map[string]string{"both": "4", "one": "2", "two": "3"} {
		if got := added(t, base, model); got != want {
			t.Errorf("%s answers %s, want %s", model, got, want)
		}
	}
	verb("unload", "{}")
	if got := added(t, base, "one"); got != "2" {
		t.Errorf("a member after its ensemble was unloaded: %s", got)
	}
	verb("load", "{}")
	verb("unload", `{"parameters":{"unload_dependents":true}}`)
	for _, model := range []string{"both", "one", "two"} {
		if got := added(t, base, model); !strings.HasPrefix(got, "503") {
			t.Errorf("%s is unloaded, and answers %s", model, got)
		}
	}
}

// An ensemble inside of another one is a model of its own: it is loaded with the outer one and unloaded with it, and
// the outer one is read anew when the inner one changes.
func TestEnsemblesInEnsemblesAreLoaded(t *testing.T) {
	needsONNX(t)
	dir := t.TempDir()
	adding(t, dir, "one", 1, 1)
	chain := func(name string, steps ...string) {
		if err := os.MkdirAll(filepath.Join(dir, name, "1"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), "config.pbtxt", `platform: "ensemble" max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 2 ] } %s`, chained("x", "y", steps))
	}
	chain("inner", "one", "one")
	chain("outer", "inner", "one")

	base := controlled(t, dir, "--model-control-mode", "explicit").url()
	controls(t, base, "outer", "load", "")
	for model, want := range map[string]string{"outer": "4", "inner": "3", "one": "2"} {
		if got := added(t, base, model); got != want {
			t.Errorf("%s: %s, want %s", model, got, want)
		}
	}
	chain("inner", "one", "one", "one")
	controls(t, base, "outer", "load", "")
	for model, want := range map[string]string{"outer": "5", "inner": "4"} {
		if got := added(t, base, model); got != want {
			t.Errorf("%s after a change of the inner one: %s, want %s", model, got, want)
		}
	}
	controls(t, base, "outer", "unload", `{"parameters":{"unload_dependents":true}}`)
	for _, model := range []string{"outer", "inner", "one"} {
		if got := added(t, base, model); !strings.HasPrefix(got, "503") {
			t.Errorf("%s after it was unloaded: %s", model, got)
		}
	}
}

// A running server loads no more models than models.limit. One that is unloaded makes room for another.
func TestModelLimitOfARunningServer(t *testing.T) {
	needsONNX(t)
	dir := t.TempDir()
	for k, name := range []string{"one", "two", "three"} {
		adding(t, dir, name, 1, float32(k+1))
	}
	base := controlled(t, dir, "--model-control-mode", "explicit", "--load-model", "one", "--model-limit", "2").url()
	controls(t, base, "two", "load", "{}")
	code, got := postTo(t, base+"/v2/repository/models/three/load", "{}")
	if code == 200 || !strings.Contains(got, "are 3 models, more than models.limit, 2") {
		t.Errorf("one too many: %d %s", code, got)
	}
	controls(t, base, "two", "load", "{}") // it is there
	controls(t, base, "one", "unload", "{}")
	controls(t, base, "three", "load", "{}")
	if got := added(t, base, "three"); got != "4" {
		t.Errorf("in the place of another: %s", got)
	}
}
