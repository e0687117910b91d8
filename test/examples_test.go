package test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// exampleFolder is a copy of the examples with the models that `go run ./examples/models` makes. Their servers' ports
// are replaced by free ones.
func exampleFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../examples")); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "run", "../examples/models", filepath.Join(dir, "models")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// Every example is simulated for a second or served, as it lies.
func TestExamplesAreSimulated(t *testing.T) {
	simulated := map[string][]string{
		"fleet": {"images", "text"}, "ladder": {"digits", "scenes"}, "ranking": {"ranking"},
		"pipeline/sluice": {"example"}, "python/sluice": {"mood"},
	}
	served := map[string]bool{"minimal": true, "mixed": true, "remote": true, "serverless": true,
		"ocr/sluice": true, "wakeword/sluice": true} // these by TestTextInAPicture and TestWakeWord
	all, err := filepath.Glob("../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../examples/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(all, more...) {
		name, _ := filepath.Rel("../examples", strings.TrimSuffix(file, ".yaml"))
		apps := simulated[filepath.ToSlash(name)]
		if len(apps) == 0 && !served[filepath.ToSlash(name)] {
			t.Errorf("%s is in none of these tests", file)
		}
		for _, app := range apps {
			status, out, errs := run(t.Context(), "simulate", "-f", file, "--app", app, "--request-rate-range", "20",
				"--duration", "1s")
			if status != 0 || !strings.Contains(out, "queries offered") {
				t.Errorf("%s, app %s: %d %s%s", file, app, status, out, errs)
			}
		}
	}
}

// The examples that run models answer a query, those with servers elsewhere beside a server that stands for them.
func TestExamplesAreServed(t *testing.T) {
	t.Parallel()
	needsONNX(t)
	dir := exampleFolder(t)
	there := serve(t, filepath.Join(dir, "models"), "--http", "off", "--grpc", "127.0.0.1:0", "--admin", "off").grpc
	for name, c := range map[string]struct {
		app, input string
		length     int
	}{
		"minimal": {"digits", "image", 784}, "remote": {"resnet", "image", 768}, "mixed": {"ranking", "features", 64},
		"serverless": {"classify", "features", 64},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name+".yaml")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = []byte(strings.NewReplacer("localhost:9001", there, "localhost:9003", there,
				"log_level: warn", "log_level: info").Replace(string(text))) // it says where it listens
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
			// Less exactly than the first serve would measure: what is tested is that the example runs.
			if name != "mixed" { // it learns while it serves
				status, out, errs := run(t.Context(), "profile", "-f", path,
					"-o", filepath.Join(dir, "sluice.profile.json"), "--max-time", "5ms", "--precision", "10")
				if status != 0 {
					t.Fatalf("%d %s%s", status, out, errs)
				}
			}
			base := serve(t, "-f", path, "--http", "127.0.0.1:0", "--grpc", "off", "--admin", "off").url()
			body := fmt.Sprintf(`{"inputs":[{"name":%q,"datatype":"FP32","shape":[1,%d],"data":[%s0]}]}`, c.input,
				c.length, strings.Repeat("0,", c.length-1))
			until(t, func() bool {
				resp, err := http.Post(base+"/v2/models/"+c.app+"/infer", "application/json",
					strings.NewReader(body))
				if err != nil {
					return false
				}
				defer resp.Body.Close()
				return resp.StatusCode == http.StatusOK
			})
		})
	}
}
