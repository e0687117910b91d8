package reproduce

import "slices"

// Experiment is a figure of a paper and how it says what it wants to have run, to a lab of type L.
type Experiment[L any] struct {
	Figure
	Prepare func(L) error
	// OnRequest has it run only when it is asked for by name: it measures times, which are the machine's.
	OnRequest bool
}

// Figures are those of parts.
func Figures[L any](experiments []Experiment[L]) []Figure {
	out := make([]Figure, len(experiments))
	for i := range experiments {
		out[i] = experiments[i].Figure
	}
	return out
}

// Prepare lets the parts that are asked for say what they want, in their order; no names ask for all that need no asking.
func Prepare[L any](runner L, experiments []Experiment[L], names []string) error {
	for i := range experiments {
		p := &experiments[i]
		if len(names) == 0 && !p.OnRequest || slices.Contains(names, p.Name) {
			if err := p.Prepare(runner); err != nil {
				return err
			}
		}
	}
	return nil
}
