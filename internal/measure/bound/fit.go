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
		if terms <= o.terms() {
			return p, nil
		}
		next, ok := o.coarser(p.windows)
		if !ok {
			return nil, fmt.Errorf("%w: %d terms in one window and one size for each app, at most %d are solved",
				ErrTooLarge, terms, o.terms())
		}
		o = next
	}
}

func (p *program) terms() (n int) {
	for i := range p.Rows {
		n += len(p.Rows[i].Terms)
	}
	return n
}
