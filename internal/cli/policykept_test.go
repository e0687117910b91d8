package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/host"
)

// ramsisWorld is fakeWorld under system ramsis, with a profile in which accuracy costs time, and policies that are
// quickly made.
func ramsisWorld(t *testing.T) string {
	t.Helper()
	path := fakeWorld(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, "profiles: [profile.json]\nsystem: {name: ramsis, options: {levels: 20, step: 0.02}}\n"...)
	point := func(variant string, batch, us int) string {
		return fmt.Sprintf(
			`{"variant": %q, "device_type": "d", "batch": %d, "concurrency": 1, "samples": 100, "mean_us": %d, `+
				`"stddev_us": 0, "p50_us": %[3]d, "p90_us": %[3]d, "p95_us": %[3]d, "p99_us": %[3]d, "interpolated": `+
				`false}`, variant, batch, us)
	}
	profile := fmt.Sprintf(`{"version": 1, "created": "2026-01-01T00:00:00Z", "points": [%s, %s, %s, %s], "loads": []}`,
		point("big", 1, 10_000), point("big", 16, 90_000), point("small", 1, 4_000), point("small", 16, 20_000))
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "profile.json"), []byte(profile), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// The first command that plans makes the policies, says so and keeps them; the next finds them and comes to the same.
func TestPoliciesAreKept(t *testing.T) {
	file := ramsisWorld(t)
	args := []string{"simulate", "-f", file, "--request-rate-range", "200", "--duration", "3s", "--json"}
	code, first, errs := sluice(t, args...)
	dir := filepath.Join(filepath.Dir(file), host.PoliciesFolder)
	if code != ExitOK || !strings.Contains(errs, "they are kept in "+dir) {
		t.Fatalf("the first time: %d %s", code, errs)
	}
	if kept, err := os.ReadDir(dir); err != nil || len(kept) < 2 {
		t.Fatalf("%d policies are kept: %v", len(kept), err)
	}
	code, second, errs := sluice(t, args...)
	if code != ExitOK || errs != "" || first != second {
		t.Errorf("the second time: %d %s, the same outcome: %v", code, errs, first == second)
	}
}

// Policies that cannot be kept serve as well; it is said once.
func TestPoliciesThatCannotBeKept(t *testing.T) {
	file := ramsisWorld(t)
	folder := filepath.Join(filepath.Dir(file), host.PoliciesFolder)
	if err := os.WriteFile(folder, []byte("in the way"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, errs := sluice(t, "simulate", "-f", file, "--request-rate-range", "200", "--duration", "1s")
	if code != ExitOK || strings.Count(errs, "was not kept") != 1 {
		t.Errorf("%d %s", code, errs)
	}
}
