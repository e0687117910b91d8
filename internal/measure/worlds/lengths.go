package worlds

import (
	_ "embed"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// WithLengths is added to the number of a world to have it with lengths: it is otherwise the same, but for objectives
// that leave the longest queries time. In the mean an item takes as long as in the world without.
const WithLengths = 1 << 20

//go:embed data/lengths.txt
var lengthsText string

// readLengths reads the embedded lengths of real prompts.
func readLengths() (out []int32) {
	for _, line := range strings.Split(lengthsText, "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, word := range strings.Fields(line) {
			n, err := strconv.ParseInt(word, 10, 32)
			if err != nil {
				panic(fmt.Sprintf("worlds: data/lengths.txt: %v", err))
			}
			out = append(out, int32(n))
		}
	}
	return out
}

// ofLength is how the time of an item grows with its length: a + b x + c x^2 with x the length in means.
type ofLength struct{ a, b, c, mean float64 }

func (f *ofLength) at(length int32) float64 {
	x := float64(length) / f.mean
	return f.a + f.b*x + f.c*x*x
}

// lengths gives all queries lengths: log-normal ones, or those of real prompts.
func (g *generator) lengths() {
	r := workload.Rand(g.w.Seed, fmt.Sprintf("world %d, lengths", g.w.Number))
	traced := r.IntN(2) == 0
	for a := range g.w.Spec.Apps {
		x := &g.w.Workload.Apps[a]
		if x.Lengths = logNormal(r); traced {
			list := readLengths()
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			x.Lengths = workload.ItemsSpec{Distribution: "file", File: "lengths-" + x.App + ".txt", Listed: list}
		}
		drawn, err := x.Lengths.Build()
		if err != nil {
			panic("worlds: lengths that cannot be: " + err.Error())
		}
		f := ofLength{a: 0.15 * r.Float64(), c: 0.4 * r.Float64(), mean: drawn.Mean()}
		f.b = 1 - f.a - f.c
		g.takeLengths(&g.w.Spec.Apps[a], drawn.Mix(), &f, r.IntN(4) > 0)
	}
	g.w.Traits = append(g.w.Traits, Lengths)
}

func logNormal(r *rand.Rand) workload.ItemsSpec {
	mu, sigma := to(math.Log(32+224*r.Float64()), 100), to(0.4+0.6*r.Float64(), 100)
	return workload.ItemsSpec{Distribution: "lognormal", Mu: mu, Sigma: sigma, Max: int32(math.Exp(mu + 2.5*sigma))}
}

// takeLengths has the variants of an app's first stage take longer for longer queries. The length that takes as long as
// the mean is the one that was measured.
func (g *generator) takeLengths(app *serving.App, mix serving.Mix, f *ofLength, pads bool) {
	mean := 0.0
	for k := range mix.Classes() {
		n, share := mix.Class(k)
		mean += share * f.at(int32(n))
	}
	reference := int32(4)
	for f.at(reference) < mean {
		reference++
	}
	spec := g.w.Spec
	longest := f.at(int32(mix.Largest())) / f.at(reference)
	least := math.Inf(1)
	for _, v := range spec.Stages[app.Stages[0]].Variants {
		spec.Variants[v].Pads = pads
		for d, k := range g.kinds {
			base := g.models[v].item * k.factor * k.fixed
			at := func(items int, stretch float64) float64 {
				return base + stretch*(g.seconds(int(v), serving.DeviceTypeID(d), items)-base)
			}
			for _, items := range []int{1, spec.Variants[v].MaxBatch} {
				for _, length := range []int32{reference / 4, 4 * reference} {
					g.w.Measurements.Length = append(g.w.Measurements.Length, serving.LengthPoint{
						Variant: v, DeviceType: serving.DeviceTypeID(d), Reference: reference, Length: length,
						Items: items, Mean: rounded(at(items, f.at(length)/f.at(reference))),
					})
				}
			}
			if spec.Variants[v].Accuracy >= app.Floor {
				least = min(least, at(largest(app), longest))
			}
		}
	}
	for _, s := range app.Stages[1:] {
		fastest := math.Inf(1)
		for _, v := range spec.Stages[s].Variants {
			for d := range g.kinds {
				if spec.Variants[v].Accuracy >= app.Floor {
					fastest = min(fastest, g.seconds(int(v), serving.DeviceTypeID(d), 1))
				}
			}
		}
		least += fastest
	}
	app.SLO.Latency = max(app.SLO.Latency, time.Duration(longestSlack*least*1e3+1)*time.Millisecond)
}

// longestSlack is how many times as long as the longest query takes alone an objective is at least.
const longestSlack = 2
