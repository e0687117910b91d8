package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// What goes wrong in a simulated run shows in its report, and what cannot go wrong is refused by its name.
func TestIncidents(t *testing.T) {
	file := fakeWorld(t)
	type figures struct {
		Offered, Failed, Late, Dropped int64
		Cost                           float64 `json:"cost_per_hour"`
	}
	run := func(args ...string) figures {
		t.Helper()
		code, out, errs := sluice(t, append([]string{"simulate", "-f", file, "--request-rate-range", "100",
			"--duration", "30s", "--no-bound", "--json"}, args...)...)
		var reports []struct{ Overall figures }
		if err := json.Unmarshal([]byte(out), &reports); code != ExitOK || err != nil || len(reports) != 1 {
			t.Fatalf("%v: status %d, %v\n%s%s", args, code, err, out, errs)
		}
		return reports[0].Overall
	}
	well := run()
	if well.Late+well.Dropped+well.Failed > well.Offered/100 {
		t.Fatalf("nothing goes wrong, and %+v", well)
	}
	// 2 s of 100 queries/s, that the successor finds to be too late.
	if x := run("--incident", "takenover@10s+2s"); x.Late+x.Dropped < 150 || x.Late+x.Dropped > 250 {
		t.Errorf("a dispatcher is taken over: %+v", x)
	}
	gone := run("--incident", "lost@10s:w-0", "--incident", "lost@10s:w-1", "--machine-start", "d=5s")
	if gone.Late+gone.Dropped < 300 {
		t.Errorf("both machines are lost, and others take 5 s: %+v", gone)
	}
	if x := run("--incident", "leaves@10s+3s:w-0"); x.Failed > 0 || x.Late+x.Dropped > x.Offered/50 {
		t.Errorf("a machine is announced to leave: %+v", x)
	}
	// Machines are paid for while they start and linger, too.
	if x := run("--machine-start", "d=5s"); x.Cost < 1.9 || x.Cost > 2.1 {
		t.Errorf("two machines of 1 $/h cost %v $/h", x.Cost)
	}
	for text, want := range map[string]string{
		"lost@10s": "happen to a worker", "burnt@10s:w-0": "of that kind", "lost@soon:w-0": "no duration",
		"lost@10s:nobody": "no worker \"nobody\"", "takenover@10s": "how long it lasts",
		"missing@10s+5s:w-0": "no machine is asked for",
	} {
		code, _, errs := sluice(t, "simulate", "-f", file, "--request-rate-range", "10", "--duration", "20s",
			"--no-bound", "--incident", text)
		if code != ExitUsage || !strings.Contains(errs, want) {
			t.Errorf("incident %s: status %d, %q, want %q", text, code, errs, want)
		}
	}
}
