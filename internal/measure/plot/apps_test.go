package plot

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/serving/report"
)

func TestApps(t *testing.T) {
	live, simulated := bursty(1, 1), bursty(2, 1.02)
	story := Story{
		Title: "load rises", Lines: []string{"a line"}, Apps: []string{"reads digits"},
		Columns: []string{"measured", "predicted"}, Spans: []Span{{10, 20, "more queries"}},
		Ladders: []string{"digits"},
	}
	f, err := NewApps(story, []*report.Report{live, simulated})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.panels) != 3 || f.panels[0][1].yHigh != f.panels[0][0].yHigh || f.panels[1][0].yHigh > 100 {
		t.Errorf("%d rows, scales to %v and %v", len(f.panels), f.panels[0][0].yHigh, f.panels[1][0].yHigh)
	}
	var svg bytes.Buffer
	if err := f.SVG(&svg); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"load rises", "a line", "reads digits", "measured", "predicted", "more queries", "which model answers",
		"% right", "of the queries late or unanswered",
	} {
		if !strings.Contains(svg.String(), text) {
			t.Errorf("%q is not in the figure", text)
		}
	}
	other := *simulated
	other.Apps = append([]report.App(nil), other.Apps...)
	other.Apps[0].Name = "codes"
	if _, err := NewApps(story, []*report.Report{live, &other}); err == nil {
		t.Error("drew runs of different apps")
	}
}
