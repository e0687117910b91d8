package kairos

import (
	"math"
	"slices"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figureP shows how well the size of a query tells its latency (§5.1): the correlation of both, and by how much runs of
// the same size differ.
func figureP(_ *runner, f *reproduce.Sheet) error {
	for _, m := range models {
		all, err := readLatencies(m.name)
		if err != nil {
			return err
		}
		at := f.At("model", m.name)
		for d := range machineTypes {
			var sizes, took, deviation []float64
			for _, p := range all.Latency {
				if int(p.DeviceType) == d {
					sizes, took = append(sizes, float64(p.Items)), append(took, p.Mean.Seconds())
					deviation = append(deviation, 100*p.StdDev.Seconds()/p.Mean.Seconds())
				}
			}
			slices.Sort(deviation)
			at.Row(machineTypes[d].Name, "Pearson coefficient", "", reproduce.Const(pearson(sizes, took))).
				Published(0.99, "§5.1: more than")
			at.Row(machineTypes[d].Name, "standard deviation, median size", "% of the mean",
				reproduce.Const(deviation[len(deviation)/2])).Published(0.5, "§5.1: less than")
			at.Row(machineTypes[d].Name, "largest", "% of the mean", reproduce.Const(deviation[len(deviation)-1]))
		}
	}
	return nil
}

// pearson returns the correlation of two lists.
func pearson(x, y []float64) float64 {
	mx, my := reproduce.Mean(x), reproduce.Mean(y)
	var xy, xx, yy float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
	}
	return xy / math.Sqrt(xx*yy)
}
