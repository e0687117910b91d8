package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/serving/report"
)

// More seeds say between which numbers runs lie; machines that are off from the profile spread them further.
func TestSimulateSaysHowSure(t *testing.T) {
	file := fakeWorld(t)
	args := []string{
		"simulate", "-f", file, "--request-rate-range", "200", "--duration", "3s", "--seeds", "8", "--json",
	}
	width := func(args ...string) float64 {
		t.Helper()
		code, out, errs := sluice(t, args...)
		var got struct {
			First  []report.Report
			Ranges map[string][]report.Range
		}
		if err := json.Unmarshal([]byte(out), &got); code != ExitOK || err != nil {
			t.Fatalf("%d, %v: %s%s", code, err, out, errs)
		}
		for _, x := range got.Ranges["simulated"] {
			if x.Metric == "latency_mean_ms" {
				if first := got.First[0].Overall.Latency.Mean; first < x.Least || first > x.Most || x.Least >= x.Most ||
					x.Mean <= x.Least || x.Mean >= x.Most {
					t.Errorf("the first of the runs has %v, all have %+v", first, x)
				}
				return x.Most - x.Least
			}
		}
		t.Fatalf("no mean latency: %s", out)
		return 0
	}
	if exact, off := width(args...), width(append(args, "--profile-error", "0.3")...); off < 2*exact {
		t.Errorf("runs lie within %.3f ms, and within %.3f ms where machines are off by 30 %%", exact, off)
	}
	for _, bad := range [][]string{{"--seeds", "0"}, {"--profile-error", "2"}, {"--journal", "j"}} {
		if code, _, errs := sluice(t, append(args, bad...)...); code != ExitUsage || !strings.Contains(errs, bad[0]) {
			t.Errorf("%v: %d %s", bad, code, errs)
		}
	}
}

// A replay says where the latency went, and which numbers of the live run lie outside of what seeds bring. In this
// record the server took 20 ms before each batch, and the client 5 ms; in the simulation nothing waits.
func TestReplaySaysWhereLatencyGoes(t *testing.T) {
	file := fakeWorld(t)
	text := `{"format":"sluice-run/1","name":"live","duration_ns":2000000000}` + "\n"
	for k := range 40 {
		q := map[string]any{
			"at_ns": k * 50_000_000, "app": "app", "outcome": "served", "latency_ns": 30_000_000,
			"queue_ns": 20_000_000, "inside_ns": 25_000_000,
		}
		line, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		text += string(line) + "\n"
	}
	path := filepath.Join(t.TempDir(), "run.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := sluice(t, "simulate", "-f", file, "--replay", path, "--seeds", "3")
	if code != ExitOK {
		t.Fatalf("%d: %s%s", code, out, errs)
	}
	for _, want := range []string{
		"until the last batch begins   20.00 ms", "in that batch                  5.00 ms",
		"outside the server             5.00 ms",
		"Most of the difference between the means arises until the last batch begins.", "above",
		"of 3 seeds: one more run lies between them with a chance of 50 %",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}
