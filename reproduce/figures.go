package reproduce

import "slices"

// Part is a figure of a paper and how it says what it wants to have run, to a lab of type L.
type Part[L any] struct {
	Figure
	Plan func(L) error
	// Asked has it run only when it is asked for by name: it measures times, which are the machine's.
	Asked bool
}

// Figures are those of parts.
func Figures[L any](parts []Part[L]) []Figure {
	out := make([]Figure, len(parts))
	for i := range parts {
		out[i] = parts[i].Figure
	}
	return out
}

// Want lets the parts that are asked for say what they want, in their order; no names ask for all that need no asking.
func Want[L any](lab L, parts []Part[L], names []string) error {
	for i := range parts {
		p := &parts[i]
		if len(names) == 0 && !p.Asked || slices.Contains(names, p.Name) {
			if err := p.Plan(lab); err != nil {
				return err
			}
		}
	}
	return nil
}
