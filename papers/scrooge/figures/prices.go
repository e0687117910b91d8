package scrooge

import (
	"slices"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// published1 is Table 1: kinds of machines with an accelerator, the dearest price over the cheapest, and the fastest
// accelerator over the slowest.
var published1 = map[string][3]float64{"GCP": {22, 8.38, 2.41}, "AWS": {19, 7.79, 2.41}, "Azure": {24, 6.46, 2.41}}

// table1 shows how Figure 11's wide market, which stands for a cloud, compares with three.
func table1(_ *runner, f *reproduce.Sheet) error {
	var prices, speeds []float64
	for t, price := range wideMarket.prices {
		if faster := wideMarket.faster(&model{}, t); faster > 0 {
			prices, speeds = append(prices, price), append(speeds, faster)
		}
	}
	ours := [3]float64{float64(len(prices)), slices.Max(prices) / slices.Min(prices),
		slices.Max(speeds) / slices.Min(speeds)}
	for _, cloud := range []string{"GCP", "AWS", "Azure"} {
		for k, what := range []string{"types with an accelerator", "price ratio", "speed ratio"} {
			f.At("beside", cloud).Row("wide market", what, "", reproduce.Const(ours[k])).
				Published(published1[cloud][k], "Table 1")
		}
	}
	return nil
}

// profiledBatches is how many batches a point of a profile takes: "several hundred" (§3.2).
const profiledBatches = 300

// publishedProfiles is what the paper's profiles cost, in $ (§4.4).
const publishedProfiles = 7.67

// figureP shows what the profiles of all graphs' models cost: every point on every type, by the machine's time.
func figureP(run *runner, f *reproduce.Sheet) error {
	all, points, done := 0.0, 0.0, map[*model]bool{}
	for i := range run.graphs {
		for _, s := range run.graphs[i].stages {
			if done[s.model] {
				continue
			}
			done[s.model] = true
			for t, price := range testbedMarket.prices {
				faster := testbedMarket.faster(s.model, t)
				if faster == 0 {
					continue
				}
				for _, p := range s.model.points(0, 0, faster) {
					points++
					all += price * p.Mean.Hours() * profiledBatches / float64(p.Concurrency)
				}
			}
		}
	}
	at := f.At("graphs", len(run.graphs), "batches a point", profiledBatches)
	at.Row("scrooge", "points", "", reproduce.Const(points))
	at.Row("scrooge", "cost of profiles", "$", reproduce.Const(all)).Published(publishedProfiles, "§4.4")
	return nil
}
