package reproduce

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// WriteTable writes rows as text. Each figure and setting is a block with a line for each system and a column for each
// quantity. The published number stands in brackets behind the measured one. Rows of one figure and setting form one
// block, at the place of the first of them.
func WriteTable(w io.Writer, rows []Row) error {
	rows = groupBySetting(rows)
	for at := 0; at < len(rows); {
		end := at
		for end < len(rows) && rows[end].Figure == rows[at].Figure && maps.Equal(rows[end].Setting, rows[at].Setting) {
			end++
		}
		if at == 0 || rows[at].Figure != rows[at-1].Figure {
			if at > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "Figure %s\n", rows[at].Figure)
		}
		if err := writeBlock(w, rows[at:end]); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// groupBySetting returns rows so that those of one figure and setting are adjacent. Figures keep their order; settings
// come in the order of their first row.
func groupBySetting(rows []Row) []Row {
	out := make([]Row, 0, len(rows))
	taken := make([]bool, len(rows))
	for i := range rows {
		if taken[i] {
			continue
		}
		for j := i; j < len(rows) && rows[j].Figure == rows[i].Figure; j++ {
			if !taken[j] && maps.Equal(rows[j].Setting, rows[i].Setting) {
				taken[j] = true
				out = append(out, rows[j])
			}
		}
	}
	return out
}

func writeBlock(w io.Writer, rows []Row) error {
	var systems, quantities []string
	cells := make(map[[2]string]string)
	for i := range rows {
		r := &rows[i]
		q := r.Quantity
		if r.Unit != "" {
			q += " (" + r.Unit + ")"
		}
		if !slices.Contains(systems, r.System) {
			systems = append(systems, r.System)
		}
		if !slices.Contains(quantities, q) {
			quantities = append(quantities, q)
		}
		cells[[2]string{r.System, q}] = formatCell(r)
	}
	var setting []string
	for _, k := range slices.Sorted(maps.Keys(rows[0].Setting)) {
		setting = append(setting, k+" "+rows[0].Setting[k])
	}
	fmt.Fprintf(w, "\n  %s\n", strings.Join(setting, ", "))
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "  system\t%s\n", strings.Join(quantities, "\t"))
	for _, s := range systems {
		fmt.Fprintf(t, "  %s", s)
		for _, q := range quantities {
			fmt.Fprintf(t, "\t%s", cells[[2]string{s, q}])
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func formatCell(r *Row) string {
	if r.Note != "" {
		return r.Note
	}
	out := formatNumber(r.Measured)
	if r.Seeds > 1 && r.High > r.Low {
		out += fmt.Sprintf(" %s..%s", formatNumber(r.Low), formatNumber(r.High))
	}
	if r.Published != nil {
		out += fmt.Sprintf(" [%s]", formatNumber(*r.Published))
	}
	return out
}

// formatNumber writes about three significant digits; from 100 on it writes whole numbers.
func formatNumber(v float64) string {
	switch a := max(v, -v); {
	case a >= 100 || a == 0:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.01:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.2g", v)
}
