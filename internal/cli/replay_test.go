package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/engine/journal"
	"github.com/sluice-serving/sluice/internal/systems"
)

// The journal that a simulated run of an example writes replays without a difference, for every system that can run the
// example. Of systems with equal engines one runs all examples and the others the first that they can. Policies take
// minutes to make for the examples: systems that make them run a small world.
func TestEverySystemReplays(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples"))); err != nil {
		t.Fatal(err)
	}
	worlds := [][]string{
		{"-f", filepath.Join(dir, "ranking.yaml"), "--request-rate-range", "60", "--duration", "6s"},
		{"-f", filepath.Join(dir, "pipeline", "sluice.yaml"), "--request-rate-range", "60", "--duration", "2s"},
		{"-f", filepath.Join(dir, "fleet.yaml"), "--app", "images", "--request-rate-range", "300", "--duration", "2s"},
		{"-f", filepath.Join(dir, "ladder.yaml"), "--app", "scenes", "--request-rate-range", "60", "--duration", "2s"},
	}
	small, file := filepath.Join(dir, "small.yaml"), filepath.Join(dir, "journal")
	ran := make(map[string]bool) // by engine
	for _, s := range systems.All() {
		in, replayed := worlds, 0
		var h journal.Header
		s.Record(&h)
		h.System = ""
		engine := fmt.Sprint(h)
		switch s.Planner {
		case "ramsis":
			write(t, small, fmt.Sprintf(smallWorld, s.Name+`, options: {levels: 10, rates: "100,200"}`))
			in = [][]string{{"-f", small, "--request-rate-range", "100", "--duration", "2s"}}
		case "tidal":
			write(t, small, fmt.Sprintf(smallWorld, s.Name))
			in = [][]string{{"-f", small, "--request-rate-range", "100", "--duration", "2s"}}
		}
		for _, args := range in {
			if replayed > 0 && ran[engine] {
				break
			}
			args = append([]string{"simulate", "--journal", file}, args...)
			if args[4] != small {
				args = append(args, "--system", s.Name)
			}
			code, _, errs := sluice(t, args...)
			if code == ExitConfig && strings.Contains(errs, "use planner") {
				continue // it is for other worlds
			}
			if code != ExitOK {
				t.Errorf("%s: status %d, %s", strings.Join(args, " "), code, errs)
				continue
			}
			replayed++
			if code, out, errs := sluice(t, "replay", file); code != ExitOK {
				t.Errorf("%s: replay: status %d, %s%s", strings.Join(args, " "), code, out, errs)
			}
		}
		ran[engine] = true
		if replayed == 0 {
			t.Errorf("system %s ran no example", s.Name)
		}
	}
}

const smallWorld = `
version: 1
device_types: [{name: d}]
workers: [{name: w, count: 2, backend: {kind: fake, latency: 4ms, latency_per_item: 1ms}}]
system: {name: %s}
apps:
  - name: app
    slo: {latency: 50ms}
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: big, accuracy: 0.9, max_batch: 4}, {name: small, accuracy: 0.7, max_batch: 4}]
`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
