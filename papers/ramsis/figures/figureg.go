package ramsis

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving/workload"
)

const (
	// patternSpan is how long a pattern of arrivals lasts, policyTime how long its policies take to be made: what 20 of
	// them for uneven gaps take on one core.
	patternSpan = 180 * time.Second
	policyTime  = 15 * time.Second
)

// figureG is what it brings to react to a pattern of arrivals (§3.1.1): gamma gaps of several shapes, with policies for
// Poisson arrivals, with those made for what is seen, and with those of the shape itself.
func figureG(run *runner, f *reproduce.Sheet) error {
	for _, rate := range run.patternRates {
		for _, shape := range run.shapes {
			gaps, err := workload.NewGamma(shape)
			if err != nil {
				return err
			}
			on := newConstantLoad("", rate, run.patternSpan)
			on.name, on.gaps, on.known = fmt.Sprintf("%v queries/s, shape %v", rate, shape), gaps, 0
			on.grid, on.planTime, on.policyRates = true, policyTime, run.trace.policyRates
			at := f.At("load", rate, "shape", shape)
			for _, options := range []map[string]string{
				nil, {"reacts": "true"}, {"shape": fmt.Sprint(shape)},
			} {
				s := reproduce.System("ramsis")
				if err := s.Options.Set(options); err != nil {
					return err
				}
				if options != nil {
					s.Name += " " + s.Options.String()
				}
				reproduce.AddRows(at, s.Name, run.simulation(a4Setup, s, on), quantities)
			}
		}
	}
	return nil
}
