package cli

import (
	"fmt"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

// printLengths says at which lengths variants were measured, and how well the fit between them is.
func printLengths(e *Env, f *profiler.File) {
	fits, err := f.LengthFits()
	if err != nil {
		return // impossible in a profile that is valid
	}
	for _, x := range fits {
		fit := fmt.Sprintf("times are within %.1f %% of the fit", 100*x.Error)
		if !x.Fitted {
			fit = "too few for a fit, so that the length does not count"
		}
		fmt.Fprintf(e.Stdout, "\n%s on %s was measured at lengths %v: %s\n", x.Variant, x.DeviceType, x.Lengths, fit)
	}
}
