package report

import "io"

// targetRounding is the error of a mean of many accuracies.
const targetRounding = 1e-9

// setTarget puts an accuracy target beside the accuracy of an app's answers; 0 is none.
func (a *App) setTarget(target float64) {
	if target <= 0 {
		return
	}
	a.Target = &target
	if got := a.EffectiveAccuracy; got != nil {
		a.Missed = ptr(0.0)
		if *got < target*(1-targetRounding) {
			a.Missed = ptr(target - *got)
		}
	}
}

// targets writes a line for every app of every report that has an accuracy target.
func targets(w io.Writer, names []string, reports []*Report) error {
	n := noteWriter{w: w, names: names}
	for k, r := range reports {
		for i := range r.Apps {
			a := &r.Apps[i]
			if a.Target == nil {
				continue
			}
			reached := "nothing was served"
			switch {
			case a.Missed != nil && *a.Missed > 0:
				reached = "missed: " + format(Fraction, a.EffectiveAccuracy)
			case a.Missed != nil:
				reached = "kept"
			}
			if err := n.line(k, "accuracy target of %s for app %s, %s", format(Fraction, a.Target), a.Name,
				reached); err != nil {
				return err
			}
		}
	}
	return nil
}
