package reproduce

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	var o Outcome
	s := map[string]string{"trace": "x"}
	o.AddRow(Row{
		Paper: "p", Figure: "4", System: "a", Quantity: "drop", Unit: "points", Setting: s,
	}.WithPublished(4.85, ""), 1, 2, 3)
	o.AddRow(Row{Paper: "p", Figure: "4", System: "a", Quantity: "nodes", Setting: s}, 1234)
	o.AddRow(Row{Paper: "p", Figure: "4", System: "b", Quantity: "drop", Unit: "points", Setting: s}, 0.004)
	o.AddRow(Row{
		Paper: "p", Figure: "4", System: "b", Quantity: "drop", Unit: "points",
		Setting: map[string]string{"trace": "y"},
	}, 7)
	o.AddRow(Row{Paper: "p", Figure: "4", System: "b", Quantity: "nodes", Setting: s}, 12)
	o.AddRow(Row{Paper: "p", Figure: "5", System: "b", Quantity: "drop", Unit: "points", Setting: s}, 0.25, 0.25)
	o.AddRow(Row{Paper: "p", Figure: "5", System: "c", Quantity: "nothing"})
	var b strings.Builder
	if err := WriteTable(&b, o.Rows); err != nil {
		t.Fatal(err)
	}
	want := `Figure 4

  trace x
  system  drop (points)           nodes
  a       2.00 1.00..3.00 [4.85]  1234
  b       0.004                   12.0

  trace y
  system  drop (points)
  b       7.00

Figure 5

  trace x
  system  drop (points)
  b       0.25
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	if r := o.Rows[0]; r.Seeds != 3 || r.Low != 1 || r.High != 3 || len(o.Rows) != 6 {
		t.Errorf("%+v of %d", r, len(o.Rows))
	}
	p := Paper{Name: "p", Figures: []Figure{{Name: "4"}}}
	if err := p.Check([]string{"4", "5"}); err == nil || !strings.Contains(err.Error(), `no figure "5"`) {
		t.Error(err)
	}
}
