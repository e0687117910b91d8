package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// mostColumns is up to how many apps get a column each: with more the table is too wide for a terminal.
const mostColumns = 8

// Table writes the report to w as text for a terminal: one row for each metric, one column for the whole run and, if
// there are several apps, one for each. Metrics that no column has are left out. Where there are many apps, they have a
// row each in a table of their own.
func (r *Report) Table(w io.Writer) error {
	var cols []*Summary
	var names []string
	if len(r.Apps) == 1 {
		names = append(names, r.Apps[0].Name)
		cols = append(cols, &r.Overall)
	} else {
		names = append(names, "all")
		cols = append(cols, &r.Overall)
		for i := range r.Apps {
			if len(r.Apps) > mostColumns {
				break
			}
			names = append(names, r.Apps[i].Name)
			cols = append(cols, &r.Apps[i].Summary)
		}
	}
	title := strconv.FormatFloat(r.DurationS, 'f', -1, 64) + " s"
	if r.Name != "" {
		title = r.Name + ", " + title
	}
	if err := grid(w, title, names, cols, false); err != nil {
		return err
	}
	if len(r.Apps) > mostColumns {
		if err := r.appTable(w); err != nil {
			return err
		}
	}
	return notes(w, []string{""}, []*Report{r})
}

// ofApps are the metrics of the table of many apps, by name.
var ofApps = []string{
	"offered_rate", "goodput", "violation_ratio", "effective_accuracy", "utility", "latency_p50_ms", "latency_p99_ms",
}

// appTable writes a row for each app, the one with most violations first.
func (r *Report) appTable(w io.Writer) error {
	var shown []*Metric
	head := []string{"app"}
	for i := range metrics {
		if slices.Contains(ofApps, metrics[i].Name) {
			shown, head = append(shown, &metrics[i]), append(head, metrics[i].Label)
		}
	}
	apps := make([]*App, len(r.Apps))
	for i := range r.Apps {
		apps[i] = &r.Apps[i]
	}
	slices.SortStableFunc(apps, func(a, b *App) int { return cmp.Compare(b.ViolationRatio, a.ViolationRatio) })
	rows := [][]string{head, nil}
	for _, x := range apps {
		row := []string{x.Name}
		for _, m := range shown {
			row = append(row, format(m.Unit, m.Value(&x.Summary)))
		}
		rows = append(rows, row)
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return align(w, rows)
}

// VariantTable writes to w the share of served queries that each variant answered, the most accurate variant first. It
// writes nothing when no variant is known.
func (r *Report) VariantTable(w io.Writer) error {
	return variantTable(w, []string{""}, []*Report{r})
}

// SideBySide writes to w the overall metrics of several reports in columns, and below them the shares of variants. For
// two reports it adds the difference: in points (pt) for fractions, in per cent for all else. There must be as many
// names as reports.
func SideBySide(w io.Writer, names []string, reports []*Report) error {
	if len(names) != len(reports) {
		return fmt.Errorf("%d names for %d reports, want as many", len(names), len(reports))
	}
	cols := make([]*Summary, len(reports))
	for i, r := range reports {
		cols[i] = &r.Overall
	}
	if err := grid(w, "", names, cols, len(reports) == 2); err != nil {
		return err
	}
	for _, r := range reports {
		if len(r.Variants) > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
			break
		}
	}
	if err := variantTable(w, names, reports); err != nil {
		return err
	}
	return notes(w, names, reports)
}

// notes writes what tables have no row for.
func notes(w io.Writer, names []string, reports []*Report) error {
	for _, write := range []func(io.Writer, []string, []*Report) error{tenantTable, targets, bounds, planFailures} {
		if err := write(w, names, reports); err != nil {
			return err
		}
	}
	return nil
}

func grid(w io.Writer, title string, names []string, cols []*Summary, differ bool) error {
	head := append([]string{title}, names...)
	if differ {
		head = append(head, "difference")
	}
	rows := [][]string{head}
	group := -1
	var differences []Difference
	if differ {
		differences = CompareSummaries(cols[0], cols[1])
	}
	for i := range metrics {
		m := &metrics[i]
		row := []string{m.Label}
		known := false
		for _, c := range cols {
			v := m.Value(c)
			known = known || (v != nil && (m.Unit != Count || *v != 0 || m.Name == "offered" || m.Name == "served"))
			row = append(row, format(m.Unit, v))
		}
		if !known {
			continue
		}
		if differ {
			row = append(row, difference(Find(differences, m.Name)))
		}
		if m.Group != group {
			rows = append(rows, nil)
			group = m.Group
		}
		rows = append(rows, row)
	}
	return align(w, rows)
}

func variantTable(w io.Writer, names []string, reports []*Report) error {
	accuracy := map[string]float64{}
	var variants []string
	for _, r := range reports {
		for _, v := range r.Variants {
			if _, seen := accuracy[v.Name]; !seen {
				variants = append(variants, v.Name)
			}
			accuracy[v.Name] = max(accuracy[v.Name], v.Accuracy)
		}
	}
	if len(variants) == 0 {
		return nil
	}
	slices.SortFunc(variants, func(a, b string) int {
		return cmp.Or(cmp.Compare(accuracy[b], accuracy[a]), cmp.Compare(a, b))
	})
	head := []string{"variant", "accuracy"}
	for _, n := range names {
		head = append(head, strings.TrimSpace(n+" share"))
	}
	rows := [][]string{head, nil}
	for _, name := range variants {
		acc := "-"
		if accuracy[name] > 0 {
			acc = format(Fraction, ptr(accuracy[name]))
		}
		row := []string{name, acc}
		for _, r := range reports {
			share := 0.0
			for _, v := range r.Variants {
				if v.Name == name {
					share += v.Share // variants of several apps may have one name
				}
			}
			row = append(row, format(Fraction, &share))
		}
		rows = append(rows, row)
	}
	return align(w, rows)
}

// align writes rows in aligned columns, the first to the left, the others to the right. A nil row is a line between
// groups; it is drawn below the head.
func align(w io.Writer, rows [][]string) error {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	total := 2 * (len(width) - 1)
	for _, n := range width {
		total += n
	}
	b := bufio.NewWriter(w)
	for i, row := range rows {
		if row == nil {
			if i == 1 {
				b.WriteString(strings.Repeat("-", total))
			}
			b.WriteByte('\n')
			continue
		}
		for k, cell := range row {
			pad := strings.Repeat(" ", width[k]-utf8.RuneCountInString(cell))
			if k == 0 {
				b.WriteString(cell)
				b.WriteString(pad)
				continue
			}
			b.WriteString("  ")
			b.WriteString(pad)
			b.WriteString(cell)
		}
		b.WriteByte('\n')
	}
	return b.Flush()
}

func format(u Unit, v *float64) string {
	if v == nil {
		return "-"
	}
	switch u {
	case Count:
		return thousands(strconv.FormatFloat(*v, 'f', 0, 64))
	case PerSec:
		return thousands(strconv.FormatFloat(*v, 'f', 1, 64)) + " /s"
	case Fraction:
		return strconv.FormatFloat(*v*100, 'f', 2, 64) + " %"
	case Millis:
		return significant(*v) + " ms"
	case Dollars:
		return significant(*v) + " $"
	}
	return significant(*v)
}

// significant writes a number with two decimals, or with three significant digits where these say more.
func significant(f float64) string {
	if f != 0 && math.Abs(f) < 0.1 {
		return strconv.FormatFloat(f, 'g', 3, 64)
	}
	return thousands(strconv.FormatFloat(f, 'f', 2, 64))
}

func thousands(s string) string {
	whole, rest, dot := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dot {
		whole += "." + rest
	}
	return sign + whole
}

func difference(d *Difference) string {
	switch {
	case d == nil:
		return "-"
	case d.Points != nil:
		return fmt.Sprintf("%+.2f pt", *d.Points)
	case d.Percent != nil:
		return fmt.Sprintf("%+.2f %%", *d.Percent)
	}
	return "-"
}
