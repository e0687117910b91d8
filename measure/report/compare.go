package report

import "math"

// Difference is one metric of two reports. Fractions differ in percentage points, everything else by B relative to A in
// per cent.
type Difference struct {
	Metric string   `json:"metric"`
	Unit   Unit     `json:"unit"`
	A      *float64 `json:"a,omitempty"`
	B      *float64 `json:"b,omitempty"`
	// Points is B - A in percentage points; nil when the unit is no fraction or a side is missing.
	Points *float64 `json:"points,omitempty"`
	// Percent is (B - A) / A in per cent; nil for fractions, when a side is missing, or when A is 0 and B is not.
	Percent *float64 `json:"percent,omitempty"`
}

// Compare returns the differences of the overall metrics that at least one of the reports has, in the order of tables.
func Compare(a, b *Report) []Difference { return CompareSummaries(&a.Overall, &b.Overall) }

// CompareSummaries is Compare for any two summaries, such as those of one app.
func CompareSummaries(a, b *Summary) []Difference {
	var out []Difference
	for i := range metrics {
		m := &metrics[i]
		d := Difference{Metric: m.Name, Unit: m.Unit, A: m.Value(a), B: m.Value(b)}
		if d.A == nil && d.B == nil {
			continue
		}
		if d.A != nil && d.B != nil {
			delta := *d.B - *d.A
			switch {
			case m.Unit == Fraction:
				d.Points = ptr(delta * 100)
			case delta == 0:
				d.Percent = ptr(0)
			case *d.A != 0:
				d.Percent = ptr(delta / math.Abs(*d.A) * 100)
			}
		}
		out = append(out, d)
	}
	return out
}

// Find returns the difference of the metric with the given JSON name, or nil.
func Find(d []Difference, metric string) *Difference {
	for i := range d {
		if d[i].Metric == metric {
			return &d[i]
		}
	}
	return nil
}
