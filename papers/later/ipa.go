package later

import (
	"time"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving/workload"
)

// The claim of the abstract of IPA (JSys 2024): end-to-end accuracy up to 21 % higher, with a minimal increase of cost.
const (
	ipaGain      = 1.21
	ipaMachines  = 60
	ipaObjective = 2500 * ms
	ipaPeak      = 30.0 // queries/s
	ipaReached   = 0.893
)

// video is a pipeline of IPA's: a detector, and a classifier of what it finds. Accuracies are those of the authors'
// configuration (data/configs/accuracies.yaml), relative to the best. On one core they measured 0.30 s for yolov5m and
// 0.125 s for resnet50 at least (table-1.ipynb); the others are ours, in proportion to the operations that the models'
// makers give. Of a batch every item takes as long.
func video() *setting {
	second := func(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }
	detect := func(name string, map50, gflop float64) model {
		return model{name, map50 / 68.9, 0, second(0.30 * gflop / 49)}
	}
	classify := func(name string, top1, gflop float64) model {
		return model{name, top1 / 78.31, 0, second(0.125 * gflop / 4.1)}
	}
	return &setting{
		apps: [][]stage{{
			{"detect", []model{
				detect("yolov5n", 45.7, 4.5), detect("yolov5s", 56.8, 16.5), detect("yolov5m", 64.1, 49),
				detect("yolov5l", 67.3, 109.1), detect("yolov5x", 68.9, 205.7),
			}, 1},
			{"classify", []model{
				classify("resnet18", 69.75, 1.8), classify("resnet34", 73.31, 3.6), classify("resnet50", 76.13, 4.1),
				classify("resnet101", 77.37, 7.8), classify("resnet152", 78.31, 11.5),
			}, 0},
		}},
		machines: ipaMachines, slo: ipaObjective, maxBatch: 8,
	}
}

// ipaWeights are weights of accuracy: the authors' own, and two with which the program knows one side alone. Those
// stand for systems that scale and batch one variant, the cheapest or the most accurate (FA2 in the abstract's
// comparison).
var ipaWeights = []struct {
	name   string
	weight float64 // 0: the system's own
}{{"ipa", 0}, {"ipa, cost alone", 1e-9}, {"ipa, accuracy alone", 1e6}}

// bursts is a load that doubles twice for a while.
func (r *runner) bursts(peak float64) load {
	span := r.span(300 * time.Second)
	at := func(part float64) float64 { return part * span.Seconds() }
	return load{name: "bursts", span: span, corners: []workload.Point{
		{At: 0, Rate: peak / 3}, {At: at(0.3), Rate: peak}, {At: at(0.45), Rate: peak / 3}, {At: at(0.7), Rate: peak},
		{At: at(0.8), Rate: peak / 3},
	}}
}

// ipaBursts weighs accuracy against machines along bursts.
func ipaBursts(r *runner, f *reproduce.Sheet) error {
	env, err := video().environment(r.Solver)
	if err != nil {
		return err
	}
	c := f.Chart("I1", "IPA: a video pipeline under bursts", 2)
	machines := c.Panel("machines with an instance", "time (s)", 0, reproduce.Auto)
	offered := c.Panel("load (queries/s)", "time (s)", 0, reproduce.Auto)
	rented := func(x *outcome) float64 { return meanOf(x.active, 0.05, 1) }
	var all []runs
	var names []string
	for _, w := range ipaWeights {
		s := reproduce.System("ipa")
		s.Options.Pipelines.AccuracyWeight = w.weight
		all, names = append(all, r.simulation("I1 "+w.name, env, s, r.bursts(ipaPeak))), append(names, w.name)
	}
	own := reproduce.System(systems.Default)
	all, names = append(all, r.simulation("I1 "+own.Name, env, own, r.bursts(ipaPeak))), append(names, own.Name)
	asAccurate, err := video().environment(r.Solver)
	if err != nil {
		return err
	}
	asAccurate.Spec.Apps[0].AccuracyTarget = ipaReached
	name := own.Name + ", as accurate as ipa"
	all, names = append(all, r.simulation("I1 "+name, asAccurate, own, r.bursts(ipaPeak))), append(names, name)
	cheapest := all[1]
	for k, x := range all {
		at := f.At("pipeline", "video")
		at.Row(names[k], "violations", "%", x.Each(violations))
		at.Row(names[k], "accuracy of those in time", "%", x.Each(accuracy))
		at.Row(names[k], "machines", "", x.Each(rented))
		bySecond(machines, names[k], x, func(x *outcome) []float64 { return x.active })
		if k == 0 {
			bySecond(offered, names[k], x, func(x *outcome) []float64 { return x.offered })
		}
		if k == 1 {
			continue
		}
		gain := at.Row(names[k], "accuracy in parts of cost alone", "", x.Each(accuracy).Over(cheapest.Each(accuracy)))
		at.Row(names[k], "machines in parts of cost alone", "", x.Each(rented).Over(cheapest.Each(rented)))
		if k == 0 {
			gain.Published(ipaGain, "abstract: up to")
		}
	}
	f.Note("Figure I1: 10 queries/s, twice 30 for a while. The accuracy of a pipeline is the product of its stages', " +
		"relative to the best variants.")
	return nil
}
