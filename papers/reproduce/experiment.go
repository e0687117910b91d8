package reproduce

import "slices"

// Experiment is a figure of a paper together with the code that produces it. R is the paper's runner.
type Experiment[R any] struct {
	Figure
	Prepare func(R) error
	// OnRequest figures run only when they are asked for by name. They measure times, which differ between machines and
	// runs.
	OnRequest bool
}

// Figures returns the figures of experiments, in their order.
func Figures[R any](experiments []Experiment[R]) []Figure {
	out := make([]Figure, len(experiments))
	for i := range experiments {
		out[i] = experiments[i].Figure
	}
	return out
}

// Prepare calls Prepare of the experiments with the given figure names, in the order of experiments. Without names it
// prepares all but those that are OnRequest. The first error ends it.
func Prepare[R any](runner R, experiments []Experiment[R], names []string) error {
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
