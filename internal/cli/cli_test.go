package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/systems"
)

// sluice runs the program with arguments.
func sluice(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &o, Stderr: &e, Getenv: os.Getenv,
		Context: context.Background(),
	})
	return code, o.String(), e.String()
}

// world writes a sluice.yaml with a fake backend and returns its path.
func fakeWorld(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	text := `
version: 1
device_types: [{name: d, price_per_hour: 1}]
workers: [{name: w, count: 2, backend: {kind: fake, latency: 4ms, latency_per_item: 1ms}}]
apps:
  - name: app
    slo: {latency: 100ms}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: big, accuracy: 0.9, max_batch: 16}, {name: small, accuracy: 0.7, max_batch: 16}]
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every command has help that ends in examples, and takes --help without doing anything.
func TestHelp(t *testing.T) {
	code, out, _ := sluice(t, "help")
	if code != ExitOK || !strings.Contains(out, "Exit status") {
		t.Errorf("help: %d %s", code, out)
	}
	for _, c := range commands() {
		if !strings.Contains(out, "  "+c.name+" ") {
			t.Errorf("help does not list %s", c.name)
		}
		for _, v := range c.verbs {
			code, text, errs := sluice(t, append(strings.Fields(v.name), "--help")...)
			at := strings.LastIndex(text, "\nExamples:\n")
			if code != ExitOK || at < 0 || !strings.Contains(text[at:], "sluice "+v.name) || errs != "" {
				t.Errorf("%s --help: %d, must end in examples:\n%s%s", v.name, code, text, errs)
			}
		}
		code, text, errs := sluice(t, c.name, "--help")
		at := strings.LastIndex(text, "\nExamples:\n")
		if code != ExitOK || at < 0 || !strings.Contains(text[at:], "sluice "+c.name) || errs != "" {
			t.Errorf("%s --help: %d, must end in examples:\n%s%s", c.name, code, text, errs)
		}
	}
}

func TestExitStatus(t *testing.T) {
	file := fakeWorld(t)
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("version: 1\nappps: []\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, ExitUsage, "Usage"},
		{[]string{"sreve"}, ExitUsage, "no command"},
		{[]string{"serv"}, ExitUsage, `did you mean "serve"`},
		{[]string{"simulate", "--nonsense"}, ExitUsage, "nonsense"},
		{[]string{"simulate", "-f", file}, ExitUsage, "say how much"},
		{
			[]string{
				"simulate", "-f", file, "--system", "none", "--request-rate-range", "5",
			}, ExitUsage, "does not exist: use one of",
		},
		{[]string{"simulate", "-f", bad, "--request-rate-range", "5"}, ExitConfig, `did you mean "apps"`},
		{[]string{"simulate", "-f", "nowhere.yaml", "--request-rate-range", "5"}, ExitConfig, "nowhere.yaml"},
		{[]string{"simulate", "-f", file, "--request-rate-range", "x"}, ExitUsage, "--request-rate-range"},
		{[]string{"config", "check"}, ExitUsage, "say what to do"},
		{[]string{"explain", "0"}, ExitUsage, "not a query number"},
		{[]string{"explain", "5", "--server", "127.0.0.1:1"}, ExitNoServer, "is the server running"},
		{[]string{"replay", file}, ExitConfig, "journal line 1"},
		{
			[]string{
				"load", "--app", "x", "--slo", "1s", "--request-rate-range", "1", "-u", "127.0.0.1:1",
			}, ExitNoServer, "does not say",
		},
		{[]string{"systems", "explain", "none"}, ExitUsage, "does not exist"},
	} {
		code, out, errs := sluice(t, c.args...)
		if code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("sluice %s: status %d, %s%s; want %d and %q", strings.Join(c.args, " "), code, out, errs, c.code,
				c.says)
		}
	}
}

func TestSimulate(t *testing.T) {
	file := fakeWorld(t)
	dir := t.TempDir()
	journal := filepath.Join(dir, "j")
	args := []string{"simulate", "-f", file, "--request-rate-range", "200", "--duration", "5s", "--json"}
	code, first, errs := sluice(t, append(args, "--journal", journal, "--out", dir)...)
	if code != ExitOK {
		t.Fatal(errs)
	}
	var reports []struct {
		Overall struct {
			Offered, Served int64
			Violation       float64 `json:"violation_ratio"`
		}
	}
	if err := json.Unmarshal([]byte(first), &reports); err != nil || reports[0].Overall.Offered < 900 ||
		reports[0].Overall.Violation > 0 {
		t.Fatalf("%v: %s", err, first)
	}
	if _, second, _ := sluice(t, args...); second != first {
		t.Error("the same seed gave other bytes")
	}
	for _, f := range []string{"run.png", "run.svg", "simulated.json"} {
		if st, err := os.Stat(filepath.Join(dir, f)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
	if code, out, errs := sluice(t, "replay", journal); code != ExitOK || !strings.Contains(out, "all the same") {
		t.Errorf("replay: %d %s%s", code, out, errs)
	}
	if code, out, errs := sluice(t, "explain", "7", "--journal", journal); code != ExitOK ||
		!strings.Contains(out, "query 7 of app") {
		t.Errorf("explain: %d %s%s", code, out, errs)
	}
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(journal, bytes.Replace(text, []byte("as routed"), []byte("instance busy"), 1),
		0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := sluice(t, "replay", journal); code != ExitShortOf || !strings.Contains(errs, "recorded") {
		t.Errorf("a changed journal: %d %s", code, errs)
	}
	if code, out, errs := sluice(t, "simulate", "-f", file, "--request-rate-range", "100:300:100", "--duration", "2s",
		"--system", "fcfs+adaptive"); code != ExitOK || !strings.Contains(out, "300-per-s") {
		t.Errorf("a range: %d %s%s", code, out, errs)
	}
}

func TestSystems(t *testing.T) {
	code, out, _ := sluice(t, "systems")
	if code != ExitOK || !strings.Contains(out, "proteus-batching") || !strings.Contains(out, "earliestfinish") {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ := sluice(t, "systems", "explain", "clkwrk"); code != ExitOK ||
		!strings.Contains(out, "Kairos §7") {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ := sluice(t, "systems", "--json"); code != ExitOK || !json.Valid([]byte(out)) {
		t.Errorf("%d %s", code, out)
	}
	for name, says := range map[string]string{
		"jellyfish+": "RTSS 2022", "fcfs": "\n  options.idle = true\n", "lsth": "\n  options.gamma\n",
		"weighted+filltimeout": "\n  timeout\n", "ratebands": "infless-op1.5",
	} {
		if code, out, errs := sluice(t, "systems", name); code != ExitOK || !strings.Contains(out, says) {
			t.Errorf("%s: %d %s%s, want %q", name, code, out, errs, says)
		}
		code, out, _ := sluice(t, "systems", name, "--json")
		var pages []systems.Page
		if err := json.Unmarshal([]byte(out), &pages); code != ExitOK || err != nil || len(pages) == 0 ||
			pages[0].Name != name || len(pages[0].Options) == 0 {
			t.Errorf("%s: %d %s", name, code, out)
		}
	}
	text := strings.TrimSpace(strings.Repeat("words of some length ", 30))
	lines := strings.Split(strings.TrimSuffix(wrap(text, "    "), "\n"), "\n")
	for at, line := range lines {
		if len(line) > lineWidth || !strings.HasPrefix(line, "    ") {
			t.Errorf("a line is %q", line)
		}
		lines[at] = strings.TrimPrefix(line, "    ")
	}
	if strings.Join(lines, " ") != text {
		t.Errorf("wrapped are %q", lines)
	}
}

// An option that no component of the system reads, and a value that it does not take, are errors with the line and the
// path where the file gives them.
func TestOptionsThatTheSystemDoesNotTake(t *testing.T) {
	path := fakeWorld(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		"system: {name: fcfs, replan: 2s}": "sluice.yaml:10: system.replan: is read by the scalers periodic, ",
		"system:\n  name: infless\n  options:\n    gamma: 0.3\n    alive: 1h": "sluice.yaml:14: " +
			"system.options.alive: is read by the keep-alive rule keepalive; system infless has the keep-alive rule " +
			"lsth: ",
		"system: {name: kairos, options: {bound: guess}}": "sluice.yaml:10: system.options.bound: is \"guess\", want " +
			"one of paper, fluid",
		"system: {name: kairos, options: {bond: fluid}}": "system.options.bond: no system here uses this setting " +
			"(did you mean \"bound\"?)",
		"system: {router: weighted, batcher: single, budget: 1}": "system.budget: is read by the planners kairos " +
			"and fluid; " +
			"system weighted+single has the planner static: ",
		"system: {name: kairos, budget: 1, replan: 2s, options: {learn: true, cells: 2}}": "",
	} {
		if err := os.WriteFile(path, append(text, given+"\n"...), 0o644); err != nil {
			t.Fatal(err)
		}
		code, out, errs := sluice(t, "config", "check", path)
		if want == "" && code != ExitOK || want != "" && (code != ExitConfig || !strings.Contains(out+errs, want)) {
			t.Errorf("%s: %d %s%s, want %s", given, code, out, errs, want)
		}
	}
}

// A profile that a server would refuse is no good configuration. One that is not there yet is measured.
func TestConfigCheckReadsProfiles(t *testing.T) {
	text, err := os.ReadFile(rankingFile)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "sluice.yaml")
	text = bytes.ReplaceAll(text, []byte("ranking.profile.json"), []byte("later.json"))
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := sluice(t, "config", "check", path); code != ExitOK {
		t.Fatalf("without its profile: %d %s%s", code, out, errs)
	}
	if err := os.WriteFile(filepath.Join(dir, "later.json"), []byte(`{"version": 7}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := sluice(t, "config", "check", path); code != ExitConfig || !strings.Contains(errs,
		"later.json: profile: version is 7, this program reads 1") {
		t.Errorf("with a profile of another version: %d %s", code, errs)
	}
}
