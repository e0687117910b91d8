package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/measure/worlds"
	"github.com/sluice-serving/sluice/serving/report"
)

// A world that was written can be simulated with the command that is printed; the report has the bound beside it.
func TestWorldsAreWrittenAndSimulated(t *testing.T) {
	folder := t.TempDir()
	code, out, errs := sluice(t, "worlds", "generate", "--seed", "1", "--first", "10", "--count", "1", "--out", folder,
		"--json")
	if code != ExitOK {
		t.Fatalf("status %d: %s", code, errs)
	}
	var list []struct {
		Name, Command string
		Traits        []string
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	if w := worlds.Generate(1, 10); list[0].Name != w.Name || strings.Join(list[0].Traits, ", ") != w.TraitList() {
		t.Errorf("the world is %+v, want %s with %s", list[0], w.Name, w.TraitList())
	}
	code, out, errs = sluice(t, append(strings.Fields(list[0].Command)[1:], "--system", "proteus", "--json")...)
	if code != ExitOK {
		t.Fatalf("%s: status %d: %s", list[0].Command, code, errs)
	}
	var reports []*report.Report
	if err := json.Unmarshal([]byte(out), &reports); err != nil {
		t.Fatal(err)
	}
	s := &reports[0].Overall
	if s.Utility == nil || s.UtilityBound == nil || s.UtilityRatio == nil || *s.Utility > *s.UtilityBound+1e-5 ||
		*s.Utility <= 0 || len(reports[0].Bound.Windows) < 2 {
		t.Errorf("utility %v of %v, ratio %v, bound %+v", s.Utility, s.UtilityBound, s.UtilityRatio, reports[0].Bound)
	}
}

func TestWorldsRefuseWrongFlags(t *testing.T) {
	for _, args := range [][]string{
		{"worlds", "generate"}, {"worlds", "generate", "--out", "x", "--count", "0"},
		{"worlds", "generate", "--out", "x", "--first", "-1"}, {"worlds", "generate", "x", "--out", "y"},
		{"worlds", "traits", "x"},
	} {
		if code, _, _ := sluice(t, args...); code != ExitUsage {
			t.Errorf("%v: status %d, want %d", args, code, ExitUsage)
		}
	}
}

// The list of traits is that of the document.
func TestWorldsTraits(t *testing.T) {
	code, out, errs := sluice(t, "worlds", "traits", "--json")
	if code != ExitOK {
		t.Fatalf("status %d: %s", code, errs)
	}
	var traits map[string]string
	if err := json.Unmarshal([]byte(out), &traits); err != nil {
		t.Fatal(err)
	}
	page := readText(t, filepath.Join("..", "..", "docs", "worlds.md"))
	for name, doc := range traits {
		if !strings.Contains(page, "| `"+name+"` | "+doc+" |") {
			t.Errorf("docs/worlds.md lacks the trait %s: %s", name, doc)
		}
	}
}

// A run above its bound is an error that names the run and the numbers.
func TestAboveTheBoundIsAnError(t *testing.T) {
	u := 0.9
	above := &report.Report{Name: "b", Overall: report.Summary{Utility: &u}, Bound: &report.Bound{Utility: 0.5}}
	below := &report.Report{Overall: report.Summary{Utility: &u}, Bound: &report.Bound{Utility: 0.95}}
	if err := possible([]*report.Report{below}); err != nil {
		t.Error(err)
	}
	err := possible([]*report.Report{below, above})
	if err == nil || !strings.Contains(err.Error(), `"b"`) || exitStatus(err) != ExitFailed {
		t.Errorf("%v", err)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
