package predict

import (
	_ "embed"
	"math"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

//go:embed data/predictions.csv
var predictionsFile []byte

// authorsPrediction is a prediction of the authors and their measurement.
type authorsPrediction struct {
	model             string
	predicted, actual float64 // ms
}

// published are the mean errors of Figure 8, as fractions. The figure leaves out all predictions that are too high or
// more than a tenth too low (a fifth for MobileNet), so its means cannot be larger.
var published = map[string]float64{"resnet-50": 0.0858, "mobilenet": 0.078, "lstm-2365": 0.0974}

func predictions() ([]authorsPrediction, error) {
	lines, err := reproduce.Records("predictions.csv", predictionsFile, "model", "cpu_threads", "gpu_percent", "batch",
		"predicted_ms", "actual_ms")
	if err != nil {
		return nil, err
	}
	var out []authorsPrediction
	for n, l := range lines {
		v, err := reproduce.Numbers("predictions.csv", n, l[4:])
		if err != nil {
			return nil, err
		}
		out = append(out, authorsPrediction{l[0], v[0], v[1]})
	}
	return out, nil
}

// addAuthors adds the mean error of each of the authors' models, over all that they measured.
func addAuthors(o *reproduce.Outcome) error {
	all, err := predictions()
	if err != nil {
		return err
	}
	for at := 0; at < len(all); {
		var errs []float64
		model := all[at].model
		for ; at < len(all) && all[at].model == model; at++ {
			errs = append(errs, 100*math.Abs(all[at].predicted/all[at].actual-1))
		}
		r := row(model, "mean error", map[string]string{"measured": "by the authors, every configuration"})
		if p, ok := published[model]; ok {
			r = r.WithPublished(100*p, "Figure 8 and §3.3, over the configurations that the figure keeps")
		}
		o.AddRow(r, mean(errs))
	}
	return nil
}

func row(system, quantity string, setting map[string]string) reproduce.Row {
	return reproduce.Row{Paper: "infless", Figure: "8", System: system, Quantity: quantity, Unit: "%", Setting: setting}
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x / float64(len(v))
	}
	return sum
}
