package milp

import (
	"math"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	good := func() *Program {
		p := &Program{}
		x := p.Column(Column{Objective: 1, Upper: Inf})
		p.Row(-Inf, 3, Term{x, 2})
		return p
	}
	if err := good().Check(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spoil func(p *Program)
		says  string
	}{
		{func(p *Program) { p.Columns[0].Objective = Inf }, "column 0: objective"},
		{func(p *Program) { p.Columns[0].Lower = math.NaN() }, "column 0: bounds"},
		{func(p *Program) { p.Columns[0].Lower = Inf }, "column 0: bounds"},
		{func(p *Program) { p.Rows[0].Upper = -Inf }, "row 0: bounds"},
		{func(p *Program) { p.Rows[0].Terms[0].Column = 1 }, "row 0 names column 1 of 1"},
		{func(p *Program) { p.Rows[0].Terms[0].Coef = Inf }, "row 0, column 0: coefficient"},
		{func(p *Program) { p.Rows[0].Terms = append(p.Rows[0].Terms, Term{0, 1}) }, "row 0 names column 0 twice"},
		{func(p *Program) { p.Columns = make([]Column, MaxColumns+1) }, "columns"},
	} {
		p := good()
		c.spoil(p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %v, want %q", err, c.says)
		}
	}
}

func TestViolation(t *testing.T) {
	p := &Program{}
	x, y := p.Column(Column{Upper: 10}), p.Column(Column{Upper: 10, Integer: true})
	p.Row(2, 4, Term{x, 1}, Term{y, 1})
	for _, c := range []struct{ x, y, want float64 }{{1, 2, 0}, {1, 0, 1}, {4, 1, 0.25}, {-1, 3, 1}} {
		if got := p.Violation([]float64{c.x, c.y}); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v, %v: %v, want %v", c.x, c.y, got, c.want)
		}
	}
}
