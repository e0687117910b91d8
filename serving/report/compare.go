package report

import "math"

// Difference compares one metric of two reports. Fractions differ by percentage points, all else by B relative to A, in
// per cent.
type Difference struct {
	Metric string   `json:"metric"`
	Unit   Unit     `json:"unit"`
	A      *float64 `json:"a,omitempty"`
	B      *float64 `json:"b,omitempty"`
	// Points is B - A in percentage points; nil unless the unit is a fraction and both sides have a value.
	Points *float64 `json:"points,omitempty"`
	// Percent is (B - A) / A in per cent; nil for fractions, when a side has no value, and when A is 0 and B is not.
	Percent *float64 `json:"percent,omitempty"`
}

// Compare returns the differences of the overall metrics, in the order of tables. Metrics that neither report has are
// left out.
func Compare(a, b *Report) []Difference { return CompareSummaries(&a.Overall, &b.Overall) }

// CompareSummaries does the same for two summaries, such as those of one app.
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

// Find returns a pointer to the element of d for the metric with the given JSON name, or nil.
func Find(d []Difference, metric string) *Difference {
	for i := range d {
		if d[i].Metric == metric {
			return &d[i]
		}
	}
	return nil
}
