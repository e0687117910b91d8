package report

import (
	"fmt"
	"io"
	"math"
)

// Range is where a metric of a whole run lies over several runs that differ by chance alone.
type Range struct {
	Metric string  `json:"metric"`
	Unit   Unit    `json:"unit"`
	Mean   float64 `json:"mean"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
	// Seen is what another run had, such as a live one, and Within whether it lies between Least and Most; nil when
	// there is none.
	Seen   *float64 `json:"seen,omitempty"`
	Within *bool    `json:"within,omitempty"`

	metric *Metric
}

// Ranges returns the ranges of the overall metrics, in the order of tables. Metrics that a run does not have are left
// out. seen is the other run, or nil.
func Ranges(runs []*Report, seen *Report) []Range {
	var out []Range
	for i := range metrics {
		m := &metrics[i]
		x := Range{Metric: m.Name, Unit: m.Unit, Least: math.Inf(1), Most: math.Inf(-1), metric: m}
		known := 0
		for _, r := range runs {
			if v := m.Value(&r.Overall); v != nil {
				known++
				x.Mean += *v / float64(len(runs))
				x.Least, x.Most = min(x.Least, *v), max(x.Most, *v)
			}
		}
		if known < len(runs) {
			continue
		}
		if seen != nil {
			if v := m.Value(&seen.Overall); v != nil {
				within := *v >= x.Least && *v <= x.Most
				x.Seen, x.Within = v, &within
			}
		}
		out = append(out, x)
	}
	return out
}

// Coverage is the chance that one more run lies between the least and the most of n, by the order of n+1 equally likely
// values.
func Coverage(n int) float64 { return float64(n-1) / float64(n+1) }

// RangeTable writes to w the ranges of several runs, and beside them those of the run that was seen, if there is one,
// under its name.
func RangeTable(w io.Writer, runs []*Report, name string, seen *Report) error {
	head := []string{"", "mean", "least", "most"}
	if seen != nil {
		head = append(head, name, "")
	}
	rows := [][]string{head}
	group := -1
	for _, x := range Ranges(runs, seen) {
		m := x.metric
		if m.Unit == Count && x.Most == 0 && (x.Seen == nil || *x.Seen == 0) {
			continue
		}
		if m.Group != group {
			rows, group = append(rows, nil), m.Group
		}
		row := []string{m.Label, format(m.Unit, &x.Mean), format(m.Unit, &x.Least), format(m.Unit, &x.Most)}
		if seen != nil {
			row = append(row, format(m.Unit, x.Seen), side(&x))
		}
		rows = append(rows, row)
	}
	if err := align(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nLeast and most are of %d seeds: one more run lies between them with a chance of %.0f "+
		"%%.\n", len(runs), 100*Coverage(len(runs)))
	return err
}

// side says on which side of a range the other run lies.
func side(x *Range) string {
	switch {
	case x.Within == nil || *x.Within:
		return ""
	case *x.Seen < x.Least:
		return "below"
	}
	return "above"
}
