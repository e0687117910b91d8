package test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/heldport"
)

// mustBrowse makes a missing browser a failure. CI sets it.
const mustBrowse = "SLUICE_BROWSER"

// needsBrowser skips a test where no Chromium, or no package of the page's tests, is installed.
func needsBrowser(t *testing.T) {
	t.Helper()
	program := os.Getenv("SLUICE_CHROMIUM")
	if program == "" {
		program = "/usr/bin/chromium"
	}
	for what, path := range map[string]string{
		"Chromium (apt-get install chromium, or set SLUICE_CHROMIUM)": program,
		"web/node_modules (scripts/web.sh --force)":                   "../web/node_modules/playwright-core",
	} {
		if _, err := os.Stat(path); err != nil {
			if os.Getenv(mustBrowse) != "" {
				t.Fatalf("there is no %s, and %s is set", what, mustBrowse)
			}
			t.Skipf("there is no %s", what)
		}
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip(err)
	}
}

// shown is a configuration with an app of several variants and a graph, on machines of two kinds.
const shown = `
version: 1
device_types: [{name: cpu, cores: 4, price_per_hour: 0.2}, {name: gpu, cores: 8, price_per_hour: 1.2}]
workers:
  - {name: small, device_type: cpu, count: 3, backend: {kind: fake, latency: 8ms, latency_per_item: 4ms}}
  - {name: large, device_type: gpu, backend: {kind: fake, latency: 5ms, latency_per_item: 1ms}}
apps:
  - name: images
    slo: {latency: 60ms}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: big, accuracy: 0.9, max_batch: 16}, {name: quick, accuracy: 0.7, max_batch: 16}]
  - name: scenes
    slo: {latency: 400ms, percentile: 95}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    stages:
      - {name: find, variants: [{name: finder, max_batch: 8}], next: [{to: read, rows: boxes, fan_out: 2}]}
      - {name: read, variants: [{name: reader, max_batch: 8}]}
server: {not_ready: 0s, http: %q, grpc: "off", admin: %q}
`

// inBrowser runs a program of web/test.
func inBrowser(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	args = append([]string{filepath.Join("..", "web", "test", program)}, args...)
	c := exec.CommandContext(t.Context(), "node", args...)
	c.Stderr = &lockedBuffer{}
	return c
}

// The whole page, in a real browser, of a server under load: every view in light and dark, wide and narrow, without an
// error, a request to another host, or a fault that keeps people out; a question "what if" from click to chart; and a
// server that starts again. Pictures are left in out/dashboard.
func TestDashboardInBrowser(t *testing.T) {
	needsBrowser(t)
	t.Setenv("SLUICE_WHAT_IF_PRIORITY", "normal")            // other tests leave no time to spare
	front, admin := heldport.Address(t), heldport.Address(t) // the server is started again
	file := write(t, t.TempDir(), "sluice.yaml", shown, front, admin)
	server := sluice(t, "serve", "-f", file)
	base := "http://" + admin
	loading, stop := context.WithCancel(t.Context())
	defer stop()
	untilStatus(t, "http://"+front+"/v2/health/ready", http.StatusOK)
	ended := make(chan struct{}, 2)
	for app, rate := range map[string]string{"images": "0:60,2:2000,4:60", "scenes": "0:15"} {
		go func() {
			_, _, _ = run(loading, "load", "-u", "http://"+front, "-f", file, "--app", app,
				"--rates", rate, "--duration", "20m")
			ended <- struct{}{}
		}()
	}
	missed(t, base)
	shots := filepath.Join("..", "out", "dashboard")
	views := inBrowser(t, "views.mjs", base, "--shots", shots)
	if out, err := views.Output(); err != nil {
		t.Errorf("%s%s%v", out, views.Stderr, err)
	}
	deeds := inBrowser(t, "deeds.mjs", base, "--shots", shots)
	in, err := deeds.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := deeds.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := deeds.Start(); err != nil {
		t.Fatal(err)
	}
	said := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch lines.Text() {
		case "stop":
			_ = server.Process.Kill()
			_ = server.Wait()
		case "start":
			sluice(t, "serve", "-f", file)
		default:
			said += lines.Text() + "\n"
			continue
		}
		if _, err := fmt.Fprintln(in); err != nil {
			t.Fatal(err)
		}
	}
	if err := deeds.Wait(); err != nil {
		t.Errorf("%s%s%v", said, deeds.Stderr, err)
	}
	stop()
	<-ended
	<-ended
}

// missed waits until some query has missed its objective, so that there is one to look at.
func missed(t *testing.T, base string) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < 30*time.Second; time.Sleep(50 * time.Millisecond) {
		if _, body := bodyOf(t, base+"/api/v1/queries?limit=1"); strings.Contains(body, `"query":`) {
			return
		}
	}
	t.Fatal("no query has missed its objective in 30 s of more load than can be served")
}
