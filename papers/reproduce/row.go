package reproduce

import (
	"fmt"
	"slices"
)

// Row is one measured number of one system in one setting. Its fields and their texts are a stable format.
type Row struct {
	Paper    string            `json:"paper"`
	Figure   string            `json:"figure"`
	System   string            `json:"system"`
	Quantity string            `json:"quantity"`
	Unit     string            `json:"unit"`
	Setting  map[string]string `json:"setting"`
	// Published is the number that the paper or its artifact gives; nil when it gives none.
	Published *float64 `json:"published"`
	// Measured is the mean over the seeds, Low the smallest and High the largest value.
	Measured float64 `json:"measured"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Seeds    int     `json:"seeds"`
	// Source says where the published number stands, such as a section or figure.
	Source string `json:"source,omitempty"`
	// Note stands in place of the number where there is none: why a system has no result. Measured is then 0.
	Note string `json:"note,omitempty"`
}

// AddRow adds a row whose Measured, Low, High and Seeds are computed from values, one for each seed. Without values it
// adds nothing. The row's setting is kept; nil becomes an empty map.
func (o *Outcome) AddRow(r Row, values ...float64) {
	r.Seeds = len(values)
	if len(values) == 0 {
		return
	}
	r.Low, r.High = slices.Min(values), slices.Max(values)
	for _, v := range values {
		r.Measured += v / float64(len(values))
	}
	// The mean of equal numbers is that number, whatever rounding does to the sum.
	r.Measured = min(max(r.Measured, r.Low), r.High)
	if r.Setting == nil {
		r.Setting = map[string]string{}
	}
	o.Rows = append(o.Rows, r)
}

// WithPublished returns the row with the number that the source gives beside it.
func (r Row) WithPublished(value float64, source string) Row {
	r.Published, r.Source = &value, source
	return r
}

// Setting returns a row's setting from names and values in turn: Setting("trace", "bursty", "load", 50). Values are
// written by fmt.Sprint.
func Setting(pairs ...any) map[string]string {
	out := make(map[string]string)
	for k := 0; k < len(pairs); k += 2 {
		out[fmt.Sprint(pairs[k])] = fmt.Sprint(pairs[k+1])
	}
	return out
}
