package proteus

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// figure1Variants and figure1Devices are how many variants and devices the configurations of Figure 1b have.
const figure1Variants, figure1Devices = 5, 5

// figure1 shows what configurations of EfficientNet give: one variant on each device, batches of one.
func figure1(run *runner, f *reproduce.Sheet) error {
	stage := indexOf(run.spec.Stages, func(s *serving.Stage) bool { return s.Name == "efficientnet" })
	variants := slices.Clone(run.spec.Stages[stage].Variants)
	accuracy := func(v serving.VariantID) float64 { return 100 * run.spec.Variants[v].Accuracy }
	slices.SortFunc(variants, func(a, b serving.VariantID) int { return cmp.Compare(accuracy(a), accuracy(b)) })
	_, m, err := readProfile(1)
	if err != nil {
		return err
	}
	p, err := profile.NewTable(run.spec, m, profile.P50)
	if err != nil {
		return err
	}
	rate := func(v serving.VariantID, d serving.DeviceTypeID) float64 {
		if took := p.Latency(v, d, 1, 1); took > 0 {
			return 1 / took.Seconds()
		}
		return 0
	}
	for d := range run.spec.DeviceTypes {
		for _, v := range variants {
			at := f.Part("1a").At("device", run.spec.DeviceTypes[d].Name)
			at.Row(run.spec.Variants[v].Name, "accuracy", "%", reproduce.Const(accuracy(v)))
			at.Row(run.spec.Variants[v].Name, "throughput", "/s", reproduce.Const(rate(v, serving.DeviceTypeID(d))))
		}
	}
	// all configurations of five variants, from the least accurate to the most, on devices of the three types in turn
	var chosen []serving.VariantID
	for k := range figure1Variants {
		chosen = append(chosen, variants[k*(len(variants)-1)/(figure1Variants-1)])
	}
	type configuration struct{ throughput, accuracy float64 }
	all := []configuration{{}}
	for d := range figure1Devices {
		var next []configuration
		for _, c := range all {
			for _, v := range chosen {
				r := rate(v, serving.DeviceTypeID(d%len(devices)))
				next = append(next, configuration{c.throughput + r, c.accuracy + r*accuracy(v)})
			}
		}
		all = next
	}
	slices.SortFunc(all, func(a, b configuration) int { return cmp.Compare(b.throughput, a.throughput) })
	best, front := math.Inf(-1), 0
	for i := range all {
		if all[i].accuracy /= all[i].throughput; all[i].accuracy > best {
			best, front = all[i].accuracy, front+1
		}
	}
	at, last := f.Part("1b").At("variants", figure1Variants, "devices", figure1Devices), all[len(all)-1]
	for _, q := range []struct {
		what, unit string
		value      float64
	}{
		{"configurations", "", float64(len(all))}, {"on the front", "", float64(front)},
		{"most throughput", "/s", all[0].throughput}, {"its accuracy", "%", all[0].accuracy},
		{"least throughput", "/s", last.throughput}, {"highest accuracy", "%", best},
	} {
		at.Row("efficientnet", q.what, q.unit, reproduce.Const(q.value))
	}
	return nil
}

// publishedRouter is the time in which the paper's router finds the place of a query, in ms (§6.8).
const publishedRouter = 1

// figureR measures the time of a query in a simulated run on this machine, in which routing is a part: arrival,
// routing, batching and simulation together, and the one plan of clipper-ha.
func figureR(run *runner, f *reproduce.Sheet) error {
	j := newJob(run.cluster, reproduce.System("clipper-ha"), run.traces[0])
	measure := func(ctx context.Context, seed uint64) (float64, error) {
		begun := time.Now()
		r, err := j.simulate(ctx, seed)
		if err != nil {
			return 0, err
		}
		return 1000 * time.Since(begun).Seconds() / float64(r.Report.Overall.Offered), nil
	}
	took := reproduce.Add(run.Runner, "time of a query", 1<<20, 1, measure)
	f.At("trace", run.traces[0].name).Row("clipper-ha", "a query, all of the engine", "ms", reproduce.All(took)).
		Published(publishedRouter, "§6.8: the router, less than")
	return nil
}
