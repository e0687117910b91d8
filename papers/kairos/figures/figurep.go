package kairos

import (
	"slices"

	"gonum.org/v1/gonum/stat"

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
			pearson := reproduce.Const(stat.Correlation(sizes, took, nil))
			at.Row(machineTypes[d].Name, "Pearson coefficient", "", pearson).
				Published(0.99, "§5.1: more than")
			at.Row(machineTypes[d].Name, "standard deviation, median size", "% of the mean",
				reproduce.Const(deviation[len(deviation)/2])).Published(0.5, "§5.1: less than")
			at.Row(machineTypes[d].Name, "largest", "% of the mean", reproduce.Const(deviation[len(deviation)-1]))
		}
	}
	return nil
}
