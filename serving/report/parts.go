package report

import (
	"fmt"
	"io"
	"math"
)

// parts of a query's latency, one after the other. Their means add up to the mean latency.
var parts = []struct {
	label string
	of    func(*Summary) *Percentiles
}{
	{"until the last batch begins", func(s *Summary) *Percentiles { return &s.Queue }},
	{"in that batch", func(s *Summary) *Percentiles { return s.Run }},
	{"outside the server", func(s *Summary) *Percentiles { return s.Outside }},
}

// PartTable writes to w where the latency of two runs went, and which part explains the difference of their means. It
// writes nothing unless both reports know their parts. There must be two names.
func PartTable(w io.Writer, names []string, a, b *Report) error {
	if len(names) != 2 {
		return fmt.Errorf("%d names for two reports", len(names))
	}
	x, y := &a.Overall, &b.Overall
	if x.Run == nil || y.Run == nil {
		return nil
	}
	head := []string{"where latency goes"}
	for _, of := range []string{"mean", "p95"} {
		head = append(head, names[0]+" "+of, names[1]+" "+of, "difference")
	}
	rows := [][]string{head, nil}
	row := func(label string, p, q *Percentiles) {
		rows = append(rows, []string{label,
			format(Millis, &p.Mean), format(Millis, &q.Mean), signed(q.Mean - p.Mean),
			format(Millis, &p.P95), format(Millis, &q.P95), signed(q.P95 - p.P95)})
	}
	most := 0
	for k, part := range parts {
		p, q := part.of(x), part.of(y)
		row(part.label, p, q)
		if m := parts[most].of; math.Abs(q.Mean-p.Mean) > math.Abs(m(y).Mean-m(x).Mean) {
			most = k
		}
	}
	row("all", &x.Latency, &y.Latency)
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	if err := align(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nMost of the difference between the means arises %s.\n", parts[most].label)
	return err
}

// signed writes a difference of times.
func signed(ms float64) string {
	if ms > 0 {
		return "+" + format(Millis, &ms)
	}
	return format(Millis, &ms)
}
