package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	names  = regexp.MustCompile(`\bsluice_[a-z_]+`)
	rows   = regexp.MustCompile("(?m)^\\|([^|]*`sluice_[^|]*)\\|")
	suffix = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// Every series that dashboard and alerts read is one that a server registers: its name is in the source of telemetry.
// Every series that docs/metrics.md defines is drawn.
func TestEverySeriesExists(t *testing.T) {
	sources, err := filepath.Glob("../../internal/measure/telemetry/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(path, "_test.go") {
			code.Write(text)
		}
	}
	registered := func(name string) bool { return strings.Contains(code.String(), `"`+name+`"`) }
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, m := range rows.FindAllStringSubmatch(string(page), -1) {
		for _, name := range names.FindAllString(m[1], -1) {
			missing[name] = true
		}
	}
	if len(missing) == 0 {
		t.Fatal("docs/metrics.md has no table of series")
	}
	for _, file := range []string{"chart/files/dashboard.json", "chart/files/alerts.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names.FindAllString(string(text), -1) {
			delete(missing, name)
			delete(missing, suffix.ReplaceAllString(name, ""))
			if !registered(name) && !registered(suffix.ReplaceAllString(name, "")) {
				t.Errorf("%s reads %s, which no server has", file, name)
			}
		}
	}
	for name := range missing {
		t.Errorf("docs/metrics.md defines %s, which chart/files/dashboard.json does not draw", name)
	}
}

// Prometheus itself reads every expression and tests the alerts.
func TestPrometheusTakesRulesAndExpressions(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: expressions and alerts are not checked (apt install prometheus)")
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	text, err := os.ReadFile("chart/files/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	var rules strings.Builder
	rules.WriteString("groups:\n- name: panels\n  rules:\n")
	for i, p := range board.Panels {
		for j, x := range p.Targets {
			// Grafana puts these in before it asks.
			expr := strings.NewReplacer("$__rate_interval", "1m", "$app", ".*").Replace(x.Expr)
			fmt.Fprintf(&rules, "  - {record: 'panel_%d_%d', expr: '%s'}\n", i, j, expr)
		}
	}
	file := filepath.Join(t.TempDir(), "panels.yaml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "rules", file}, {"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"},
	} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = "chart/files"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
