package capacity

import "github.com/sluice-serving/sluice/policy/plan"

// Outlook is what a plan does for an app, in queries/s.
type Outlook struct {
	Demand, Capacity float64
	Served           float64 // of the demand
	Accuracy         float64 // mean of what is served
	Missing          float64 // what is left out; 0 for none
}

// Foresee fills in the demand, the capacity, what is left out, the throughput and the accuracy of a plan. apps is by
// AppID.
func Foresee(out *plan.Plan, apps []Outlook) {
	out.Demand, out.Capacity = make([]float64, len(apps)), make([]float64, len(apps))
	missing, sheds := make([]float64, len(apps)), false
	var accuracy, served float64
	for a, x := range apps {
		out.Demand[a], out.Capacity[a], missing[a] = x.Demand, x.Capacity, x.Missing
		out.Forecast.Throughput += x.Capacity
		accuracy += x.Served * x.Accuracy
		served += x.Served
		sheds = sheds || x.Missing > 0
	}
	if sheds {
		out.Shed = missing
	}
	if served > 0 {
		out.Forecast.Accuracy = accuracy / served
	}
}

// DemandTolerance is how near to the largest part of the demand that fits the search comes.
const DemandTolerance = 1.0 / 256

// LargestPart returns the largest part of a demand below all of it that fits, and what fit says of it. part is 0 where
// nothing fits.
func LargestPart[T any](fit func(part float64) (x T, ok bool, err error)) (best T, part float64, err error) {
	for high := 1.0; high-part > DemandTolerance; {
		middle := (part + high) / 2
		x, ok, err := fit(middle)
		switch {
		case err != nil:
			return best, 0, err
		case ok:
			best, part = x, middle
		default:
			high = middle
		}
	}
	return best, part, nil
}
