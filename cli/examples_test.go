package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// The examples that need no models run in the simulator as they are.
func TestExamples(t *testing.T) {
	for _, c := range [][]string{
		{"ladder.yaml", "digits"},
		{"ladder.yaml", "scenes"},
	} {
		code, out, errs := sluice(t, "simulate", "-f", filepath.Join("..", "examples", c[0]), "--app", c[1], "--request-rate-range", "40", "--duration", "5s")
		if code != ExitOK || !strings.Contains(out, "SLO violations") {
			t.Errorf("%s, app %s: %d %s%s", c[0], c[1], code, out, errs)
		}
	}
}
