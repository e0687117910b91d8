// Package figuretest checks properties that the figures of every paper have.
package figuretest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// SameTwice runs figures once with one task at a time and once with several, and fails where the outcomes differ in a
// byte. run must make a new runner for each call. It returns the first outcome.
func SameTwice(t *testing.T, run func(parallel int) (*reproduce.Outcome, error)) *reproduce.Outcome {
	t.Helper()
	first, err := run(1)
	if err != nil {
		t.Fatal(err)
	}
	second, err := run(4)
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Rows) == 0 || len(first.Rows) != len(second.Rows) {
		t.Fatalf("%d rows, and %d the second time", len(first.Rows), len(second.Rows))
	}
	for i := range first.Rows {
		a, b := encode(t, first.Rows[i]), encode(t, second.Rows[i])
		if a != b {
			t.Errorf("a row comes out differently the second time:\n%s\n%s", a, b)
		}
	}
	if a, b := encode(t, first.Notes), encode(t, second.Notes); a != b {
		t.Errorf("notes come out differently the second time:\n%s\n%s", a, b)
	}
	if len(first.Charts) != len(second.Charts) {
		t.Fatalf("%d charts, and %d the second time", len(first.Charts), len(second.Charts))
	}
	for i := range first.Charts {
		// Charts have gaps, which are NaN and have no JSON.
		a, b := fmt.Sprintf("%+v", first.Charts[i].Drawing), fmt.Sprintf("%+v", second.Charts[i].Drawing)
		if first.Charts[i].Name != second.Charts[i].Name || a != b {
			t.Errorf("chart %s comes out differently the second time", first.Charts[i].Name)
		}
	}
	return first
}

func encode(t *testing.T, x any) string {
	t.Helper()
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
