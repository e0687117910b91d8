package worlds

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// model is how long a variant takes: an item on a machine of factor 1, in seconds, alone.
type model struct{ item float64 }

// apps draws apps, their graphs, variants and sizes of queries. Objectives come with the latencies.
func (g *generator) apps() {
	n := g.whole(1, 4)
	switch {
	case g.w.Has(Crowded) && g.w.Has(ManyApps):
		n = g.whole(6, 14)
	case g.w.Has(Crowded):
		n = len(g.w.Spec.Workers) + g.whole(1, 4)
	case g.w.Has(ManyApps):
		n = g.whole(6, 14)
	}
	total := 0.0
	for a := range n {
		app := serving.App{
			Name: fmt.Sprintf("app%d", a+1), SLO: serving.SLO{Percentile: 99}, Weight: 1, QueueLimit: 1000,
			ColdWait: 30 * time.Second,
		}
		if g.w.Has(Weights) {
			app.Weight = []float64{0.5, 1, 2, 5}[g.rng.IntN(4)]
		}
		g.w.Spec.Apps = append(g.w.Spec.Apps, app)
		g.sizes()
		g.graph(serving.AppID(a))
		share := math.Exp(g.between(0, 2.5))
		g.share = append(g.share, share)
		total += share
	}
	for a := range g.share {
		g.share[a] /= total
	}
}

// largestQuery is the most items of a query in a world with sizes.
const largestQuery = 64

// sizes draws the sizes of an app's queries.
func (g *generator) sizes() {
	var s workload.ItemsSpec
	if g.w.Has(Sizes) {
		switch g.rng.IntN(3) {
		case 0:
			s = workload.ItemsSpec{Distribution: "uniform", Min: 1, Max: int32(g.whole(4, largestQuery))}
		case 1:
			s = workload.ItemsSpec{
				Distribution: "lognormal", Mu: to(g.between(0.7, 2.2), 100), Sigma: to(g.between(0.4, 1), 100),
				Max: largestQuery,
			}
		default:
			s = workload.ItemsSpec{
				Distribution: "histogram", Sizes: []int32{1, int32(g.whole(2, 8)), int32(g.whole(16, largestQuery))},
				Weights: []float64{6, 3, 1},
			}
		}
	}
	g.w.Items = append(g.w.Items, s)
	app := &g.w.Spec.Apps[len(g.w.Spec.Apps)-1]
	if g.w.Has(Sizes) {
		built, err := s.Build()
		if err != nil {
			panic("worlds: sizes that cannot be: " + err.Error())
		}
		app.Mix = built.Mix()
	}
}

// graph draws the stages of an app: one, a chain of two or three, a fan, or a fan that joins.
func (g *generator) graph(a serving.AppID) {
	stages, joined := 1, false
	if g.w.Has(Graphs) && (a == 0 || g.rng.IntN(3) > 0) {
		stages = g.whole(2, 3)
		joined = stages == 3 && g.rng.IntN(3) == 0
	}
	spec := g.w.Spec
	first := serving.StageID(len(spec.Stages))
	app := &spec.Apps[a]
	mean := 1.0
	if g.w.Has(Sizes) {
		built, _ := g.w.Items[a].Build()
		mean = built.Mean()
	}
	ladder := g.whole(2, 6)
	if stages > 1 {
		ladder = g.whole(2, 4)
	}
	if g.w.Has(OneVariant) {
		ladder = 1
	}
	for s := range stages {
		id := first + serving.StageID(s)
		name := app.Name
		if stages > 1 {
			name = fmt.Sprintf("s%d", s+1)
		}
		spec.Stages = append(spec.Stages, serving.Stage{Name: name, App: a})
		app.Stages = append(app.Stages, id)
		items := mean
		if s > 0 {
			from := first
			if stages == 3 && s == 2 && g.rng.IntN(2) == 0 {
				from = first + 1
			}
			items = g.edge(from, id, joined)
			if joined && s == 2 { // the third joins the first and the second
				for _, f := range []serving.StageID{first, first + 1} {
					if f != from {
						items = max(items, g.edge(f, id, joined))
					}
				}
			}
		}
		g.items = append(g.items, items)
		g.variants(id, ladder)
	}
	if g.w.Has(Floors) && ladder > 1 {
		g.floor(app)
	}
}

// edge adds an edge and returns the items that it brings to a query. Fan-outs are whole, since a fraction would be
// rounded; those of joins are 1, since a join takes the most that an edge delivers.
func (g *generator) edge(from, to serving.StageID, joined bool) float64 {
	fan := []float64{1, 1, 2, 3, 4}[g.rng.IntN(5)]
	if joined {
		fan = 1
	}
	st := &g.w.Spec.Stages[from]
	st.Next = append(st.Next, serving.Edge{To: to, FanOut: fan})
	g.w.Spec.Stages[to].Joins++
	return g.items[from] * fan
}

// variants draws the ladder of a stage: each rung takes 1.3 to 2.6 times as long as the one below and is wrong less
// often. The file lists them in random order, as files do.
func (g *generator) variants(s serving.StageID, n int) {
	spec := g.w.Spec
	item := math.Exp(g.between(math.Log(0.002), math.Log(0.02)))
	wrong := g.between(0.15, 0.45)
	memory := g.between(20, 200)
	most := []int{8, 16, 32, 64}[g.rng.IntN(4)]
	if g.w.Has(Sizes) {
		most = 2 * largestQuery
	}
	var list []serving.Variant
	var models []model
	for k := range n {
		list = append(list, serving.Variant{
			Name: fmt.Sprintf("%s-%s-v%d", spec.Apps[spec.Stages[s].App].Name, spec.Stages[s].Name, k+1), Stage: s,
			Accuracy: to(1-wrong, 1000), MaxBatch: most, MemoryBytes: int64(memory) * mebi,
		})
		models = append(models, model{item})
		item *= g.between(1.3, 2.6)
		wrong *= g.between(0.55, 0.9)
		memory *= g.between(1.2, 2.4)
	}
	g.rng.Shuffle(n, func(i, j int) {
		list[i], list[j] = list[j], list[i]
		models[i], models[j] = models[j], models[i]
	})
	for k := range list {
		spec.Stages[s].Variants = append(spec.Stages[s].Variants, serving.VariantID(len(spec.Variants)))
		spec.Variants = append(spec.Variants, list[k])
		g.models = append(g.models, models[k])
	}
}

// floor sets an app's floor below the accuracy of a variant of each of its stages, and above the least of some.
func (g *generator) floor(app *serving.App) {
	if g.rng.IntN(4) == 0 {
		return
	}
	spec := g.w.Spec
	low, high := 1.0, 1.0 // the least accuracy of any variant, and the least of the stages' best
	for _, s := range app.Stages {
		for _, v := range spec.Stages[s].Variants {
			low = min(low, spec.Variants[v].Accuracy)
		}
		high = min(high, spec.BestOfStage(s))
	}
	app.Floor = to(low+(high-low)*g.between(0.2, 0.7), 1000)
}
