package bound

import (
	"errors"
	"fmt"

	"github.com/sluice-serving/sluice/serving"
)

// ErrTooLarge says that even the coarsest program has more terms than it may.
var ErrTooLarge = errors.New("bound: the program is too large")

// fit builds the finest program that has no more terms than it may.
func fit(w *Model, queries []Query, o Options, value func(a serving.AppID, accuracy float64) float64) (*program,
	error) {
	for {
		p := newProgram(w, queries, o)
		p.build(value)
		terms := p.terms()
		switch {
		case terms <= o.terms():
			return p, nil
		case p.windows > 1:
			o.Windows = (p.windows + 1) / 2
		case o.classes() > 1:
			o.Classes = (o.classes() + 1) / 2
		default:
			return nil, fmt.Errorf("%w: %d terms in one window and one size for each app, at most %d are solved",
				ErrTooLarge, terms, o.terms())
		}
	}
}

func (p *program) terms() (n int) {
	for i := range p.Rows {
		n += len(p.Rows[i].Terms)
	}
	return n
}
