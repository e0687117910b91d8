package cli

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/host/policies"
)

// askPolicy runs 'sluice policy' and reads its JSON.
func askPolicy[T any](t *testing.T, want int, args ...string) (out T) {
	t.Helper()
	code, text, errs := sluice(t, append([]string{"policy"}, append(args, "--json")...)...)
	if code != want {
		t.Fatalf("sluice policy %s: status %d, want %d: %s", strings.Join(args, " "), code, want, errs)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

// A set is made, kept in the files that are printed, and found the next time; neighbours are as close as asked.
func TestPolicyGenerate(t *testing.T) {
	file := ramsisWorld(t)
	first := askPolicy[[]policies.Policy](t, ExitOK, "generate", "-f", file)
	if len(first) < 3 {
		t.Fatalf("%d policies", len(first))
	}
	for i, v := range first {
		if _, err := os.Stat(v.File); err != nil || v.TookMS == nil || !(*v.TookMS > 0) || v.App != "app" ||
			v.WorkerType != "d" {
			t.Errorf("%v: %+v", err, v)
		}
		if v.Median < v.Worst99 || v.Accuracy > 0.9+1e-12 || v.Violation < 0 || v.Busy < 0 || v.Busy > 1 {
			t.Errorf("promises %+v", v)
		}
		if i > 0 && (v.Rate <= first[i-1].Rate || v.Accuracy > first[i-1].Accuracy+1e-3) {
			t.Errorf("%+v after %+v", v, first[i-1])
		}
		if i > 0 && v.Violation < 0.5 && first[i-1].Accuracy-v.Accuracy > 0.02+1e-9 && v.Rate > 1.02*first[i-1].Rate {
			t.Errorf("%+v is farther than 0.02 from %+v", v, first[i-1])
		}
	}
	for i, v := range askPolicy[[]policies.Policy](t, ExitOK, "generate", "-f", file) {
		if v.TookMS != nil || v.File != first[i].File || v.Accuracy != first[i].Accuracy {
			t.Errorf("found %+v, made %+v", v, first[i])
		}
	}
	two := askPolicy[[]policies.Policy](t, ExitOK, "generate", "-f", file, "--rates", "300,150")
	if len(two) != 2 || two[0].Rate != 150 || two[1].Rate != 300 {
		t.Errorf("two rates: %+v", two)
	}
	code, out, errs := sluice(t, "policy", "generate", "-f", file)
	if code != ExitOK || strings.Count(out, ".json\n") != len(first) || !strings.Contains(out, "0 of them made now") {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

// The table says what the policy says, state by state.
func TestPolicyShow(t *testing.T) {
	file := ramsisWorld(t)
	tables := askPolicy[[]policies.Table](t, ExitOK, "show", "-f", file, "--rate", "200")
	if len(tables) != 1 || tables[0].Rate < 200 || tables[0].From >= 200 {
		t.Fatalf("%+v", tables)
	}
	x := tables[0]
	for n, row := range x.Rows {
		if row.Queue != n+1 || row.Runs[0].FromMS != 0 {
			t.Errorf("row %d: %+v", n, row)
		}
		for i, run := range row.Runs {
			if run.Queries < 1 || run.Queries > row.Queue || i > 0 &&
				(run.FromMS != row.Runs[i-1].ToMS || run.Variant == row.Runs[i-1].Variant &&
					run.Queries == row.Runs[i-1].Queries) {
				t.Errorf("row %d: %+v", n, row)
			}
		}
	}
	if last := x.Rows[0].Runs[len(x.Rows[0].Runs)-1]; last.Variant != "big" {
		t.Errorf("a query alone with all its time is served by %+v", last)
	}
	code, out, errs := sluice(t, "policy", "show", "-f", file, "--rate", "200")
	if code != ExitOK || errs != "" || !strings.Contains(out, "QUEUE  small") || strings.Count(out, "\n") < len(x.Rows)+
		4 {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

// Promises hold where machines are as believed, and are seen to be broken where they are not.
func TestPolicyVerify(t *testing.T) {
	file := ramsisWorld(t)
	rows := askPolicy[[]policies.Verified](t, ExitOK, "verify", "-f", file, "--rates", "100,300", "--queries", "2000")
	if len(rows) != 2 || rows[0].Rate != 100 || rows[1].Rate != 300 {
		t.Fatalf("%+v", rows)
	}
	for _, r := range rows {
		if r.Verdict != policies.Kept || !r.Satisfiable || math.Abs(r.Promised.Accuracy-r.Observed.Accuracy) > 0.01 {
			t.Errorf("%+v", r)
		}
	}
	// Machines whose times scatter widely around what is believed, with the same 95th percentile.
	profile := filepath.Join(filepath.Dir(file), "wild.json")
	if err := os.WriteFile(profile, []byte(`{"version": 1, "created": "2026-01-01T00:00:00Z", "points": [
  {"variant": "big", "device_type": "d", "batch": 1, "concurrency": 1, "samples": 100, "mean_us": 40000,
      "stddev_us": 80000, "p50_us": 20000, "p90_us": 40000, "p95_us": 45000, "p99_us": 300000, "interpolated": false},
  {"variant": "small", "device_type": "d", "batch": 1, "concurrency": 1, "samples": 100, "mean_us": 4000,
      "stddev_us": 2000, "p50_us": 4000, "p90_us": 5000, "p95_us": 5000, "p99_us": 7000, "interpolated": false}],
 "loads": []}`), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"verify", "-f", file, "--profile", profile, "--rates", "10", "--queries", "2000"}
	if rows := askPolicy[[]policies.Verified](t, ExitOK, args...); rows[0].Verdict != policies.Kept {
		t.Errorf("as believed: %+v", rows)
	}
	if rows := askPolicy[[]policies.Verified](t, ExitShortOf, append(args, "--measured")...); rows[0].Verdict !=
		policies.Broken || !(rows[0].Observed.Violation > rows[0].Promised.Violation) {
		t.Errorf("as measured: %+v", rows)
	}
}

func TestPolicyExitStatus(t *testing.T) {
	file, plain := ramsisWorld(t), fakeWorld(t)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"policy"}, ExitUsage, "generate"},
		{[]string{"policy", "--help"}, ExitOK, "Examples"},
		{[]string{"help", "policy", "show"}, ExitOK, "--worker-type"},
		{[]string{"policy", "burn"}, ExitUsage, "there is no"},
		{[]string{"policy", "generate", "-f", plain}, ExitUsage, "makes no policies"},
		{[]string{"policy", "generate", "-f", file, "--rates", "10,x"}, ExitUsage, "not a rate"},
		{[]string{"policy", "show", "-f", file}, ExitUsage, "--rate is needed"},
		{
			[]string{
				"policy", "show", "-f", file, "--rate", "5", "--rates", "10", "--app", "none",
			}, ExitUsage, "--app app --worker-type d",
		},
		{[]string{"policy", "verify", "-f", file, "--seeds", "1"}, ExitUsage, "--seeds"},
		{[]string{"policy", "generate", "-f", "nowhere.yaml"}, ExitConfig, "nowhere.yaml"},
	} {
		code, out, errs := sluice(t, c.args...)
		if code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("sluice %s: status %d, %s%s; want %d and %q", strings.Join(c.args, " "), code, out, errs, c.code,
				c.says)
		}
	}
}

// A plan with policies is as accurate as the policy for its demand promises.
func TestPlanWithPolicies(t *testing.T) {
	file := ramsisWorld(t)
	r := askPlan(t, ExitOK, "-f", file, "--demand", "200", "--json")
	shown := askPolicy[[]policies.Table](t, ExitOK, "show", "-f", file, "--rate", "200")
	if got := *r.Plans[0].Accuracy; !near(got, shown[0].Accuracy) {
		t.Errorf("the plan's accuracy is %v, the policy promises %v", got, shown[0].Accuracy)
	}
}
