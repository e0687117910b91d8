package later

import (
	"embed"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving/workload"
)

// The claims of the abstract of Loki (HPDC 2024).
const (
	lokiGain      = 2.7  // capacity of a fixed cluster over hardware scaling only
	lokiViolates  = 10.0 // times fewer violations than systems before it
	lokiOffPeak   = 2.67 // times fewer servers off peak
	lokiAbstract  = "abstract"
	lokiMachines  = 20
	lokiObjective = 250 * ms
)

// traffic is a pipeline that finds three objects in a frame and classifies each.
func traffic() *setting {
	return &setting{
		apps: [][]stage{{
			{"detect", []model{
				{"detect-n", 0.65, 2 * ms, 8 * ms}, {"detect-s", 0.80, 2 * ms, 11 * ms},
				{"detect-m", 0.90, 3 * ms, 16 * ms}, {"detect-l", 0.96, 3 * ms, 22 * ms},
				{"detect-x", 1, 4 * ms, 33 * ms},
			}, 3},
			{"classify", []model{
				{"classify-0", 0.91, 2 * ms, 1200 * us}, {"classify-1", 0.94, 3 * ms, 1600 * us},
				{"classify-3", 0.97, 4 * ms, 2100 * us}, {"classify-4", 0.985, 4 * ms, 2800 * us},
				{"classify-5", 0.995, 5 * ms, 3900 * us}, {"classify-6", 1, 6 * ms, 5000 * us},
			}, 0},
		}},
		machines: lokiMachines, slo: lokiObjective, maxBatch: 16,
	}
}

// lokiWorld is a world in which Loki's claims are tried.
type lokiWorld struct {
	models string // whose they are
	make   func() (*setting, error)
	limits []limits
	most   float64 // highest rate, in queries/s, at which the searches of Figure L1 look
	peak   float64 // of the day, in queries/s; the nights have a tenth of it
}

// lokiWorlds are a modelled one and the authors'. A load counts as carried whatever the accuracy, and with a part of
// the best: nine tenths, or half where the authors' next best path has 0.72.
var lokiWorlds = []lokiWorld{
	{"modelled", func() (*setting, error) { return traffic(), nil }, []limits{{late: 5}, {late: 5, accuracy: 90}},
		2000, 700},
	{"the authors'", measuredTraffic, []limits{{late: 5}, {late: 5, accuracy: 50}}, 1000, 300},
}

//go:embed data/*.csv
var files embed.FS

// measure adds the models of a stage that Loki's authors measured.
func (s *setting) measure(stage string) (out []model, err error) {
	head := "stage,model,accuracy"
	for b := 1; b <= measuredBatch; b++ {
		head += fmt.Sprint(",ms_", b)
	}
	return out, reproduce.Data{Files: files}.Read("loki.csv", head, 2, func(key []string, v []float64) error {
		if key[0] != stage {
			return nil
		}
		out = append(out, model{name: key[1], accuracy: v[0]})
		for _, x := range v[1:] {
			s.measured[key[1]] = append(s.measured[key[1]], time.Duration(x*float64(ms)))
		}
		return nil
	})
}

const (
	measuredBatch     = 16
	measuredObjective = 500 * ms // the authors' traffic_analysis.json
	// measuredCars is how many cars yolov5x finds in a frame, of 18.9 objects; the rest are faces.
	measuredCars = 18.894 * 0.9429
)

// measuredTraffic is the authors' traffic analysis without its second branch, which has 6 % of the objects. Fan-outs
// belong to edges, so that every detector finds as many cars as the best.
func measuredTraffic() (*setting, error) {
	s := &setting{
		machines: lokiMachines, slo: measuredObjective, maxBatch: measuredBatch, measured: map[string][]time.Duration{},
	}
	detect, err := s.measure("detect")
	if err != nil {
		return nil, err
	}
	classify, err := s.measure("classify")
	s.apps = [][]stage{{{"detect", detect, measuredCars}, {"classify", classify, 0}}}
	return s, err
}

func (w *lokiWorld) environment(r *runner) (*experiment.Environment, error) {
	s, err := w.make()
	if err != nil {
		return nil, err
	}
	return s.environment(r.Solver)
}

// compared are the systems of the figures. Queries arrive by chance, so that the two systems of Loki plan for a fifth
// more than comes.
func compared() []systems.System {
	out := reproduce.Systems("loki", "loki-hardware", "proteus", "ipa")
	for n := range out[:2] {
		out[n].Options.Planning.Headroom = lokiHeadroom
	}
	return out
}

const lokiHeadroom = 1.2

// lokiCapacity compares what 20 machines carry.
func lokiCapacity(r *runner, f *reproduce.Sheet) error {
	c := f.Chart("L1", "Loki: what 20 machines carry", 1)
	for i := range lokiWorlds {
		w := &lokiWorlds[i]
		if err := r.capacity(f, w, c.Bars(w.models+" models: carried (queries/s)")); err != nil {
			return err
		}
	}
	f.Note("Figure L1: a load counts as carried when at most 5 % of the queries miss the objective, 250 ms with " +
		"modelled models and 500 with the authors'. Hardware scaling only is the system loki-hardware, which has the " +
		"most accurate variants. Both plan for a fifth more than comes, because queries arrive by chance. proteus " +
		"plans by stages and does not know what accuracy two of them have together.")
	return nil
}

func (r *runner) capacity(f *reproduce.Sheet, w *lokiWorld, panel *reproduce.Panel) error {
	env, err := w.environment(r)
	if err != nil {
		return err
	}
	for _, l := range w.limits {
		accuracy := "any"
		if l.accuracy > 0 {
			accuracy = fmt.Sprintf("at least %v %%", l.accuracy)
		}
		at, all := f.At("models", w.models, "accuracy", accuracy), compared()
		for _, s := range all {
			carried := func(s systems.System) reproduce.Values {
				return r.carried("L1 "+w.models, env, s, l, w.most, 15*time.Second)
			}
			at.Row(s.Name, "carried", "queries/s", carried(s))
			gain := at.Row(s.Name, "in parts of hardware scaling only", "", carried(s).Over(carried(all[1])))
			if s.Name == "loki" {
				gain.Published(lokiGain, lokiAbstract)
			}
			panel.Bar("accuracy: "+accuracy, s.Name, carried(s))
		}
	}
	return nil
}

// day is a load that rises from a tenth to its peak and falls again, between quiet nights.
func (r *runner) day(peak float64) load {
	span := r.span(300 * time.Second)
	at := func(part float64) float64 { return part * span.Seconds() }
	return load{name: "day", linear: true, span: span, corners: []workload.Point{
		{At: 0, Rate: peak / 10}, {At: at(0.2), Rate: peak / 10}, {At: at(0.45), Rate: peak},
		{At: at(0.55), Rate: peak}, {At: at(0.8), Rate: peak / 10}, {At: span.Seconds(), Rate: peak / 10},
	}}
}

// lokiDay runs a day's load.
func lokiDay(r *runner, f *reproduce.Sheet) error {
	c := f.Chart("L2", "Loki: a day's load on 20 machines", len(lokiWorlds))
	for i := range lokiWorlds {
		if err := r.dayIn(&lokiWorlds[i], f, c); err != nil {
			return err
		}
	}
	f.Note("Figure L2: the load rises from a tenth of 700 queries/s, of 300 with the authors' models, to all of it " +
		"and falls again. Off peak is the last fifth of the time.")
	return nil
}

func (r *runner) dayIn(w *lokiWorld, f *reproduce.Sheet, c *reproduce.Graph) error {
	env, err := w.environment(r)
	if err != nil {
		return err
	}
	const night = 0.2 // both ends of the day; the first seconds are left out
	offPeak := func(x *outcome) float64 { return meanOf(x.active, 1-night, 1) }
	published := map[string]map[string]float64{
		"loki-hardware": {"violations": lokiViolates}, "proteus": {"violations": lokiViolates, "machines": lokiOffPeak},
	}
	machines := c.Panel(w.models+" models: machines with an instance", "time (s)", 0, reproduce.Auto)
	offered := c.Panel(w.models+" models: load (queries/s)", "time (s)", 0, reproduce.Auto)
	var loki runs
	for n, s := range compared() {
		x, at := r.simulation("L2 "+w.models+" "+s.Name, env, s, r.day(w.peak)), f.At("models", w.models)
		at.Row(s.Name, "violations", "%", x.Each(violations))
		at.Row(s.Name, "accuracy of those in time", "%", x.Each(accuracy))
		at.Row(s.Name, "machines off peak", "", x.Each(offPeak))
		bySecond(machines, s.Name, x, func(x *outcome) []float64 { return x.active })
		if n == 0 {
			loki = x
			bySecond(offered, s.Name, x, func(x *outcome) []float64 { return x.offered })
			continue
		}
		at.Row(s.Name, "violations in parts of loki's", "", timesOver(x.Each(violations), loki.Each(violations))).
			Published(reproduce.In(published[s.Name], "violations"), lokiAbstract+": up to, over systems before it")
		at.Row(s.Name, "machines off peak in parts of loki's", "", timesOver(x.Each(offPeak), loki.Each(offPeak))).
			Published(reproduce.In(published[s.Name], "machines"), "summaries of the text: up to")
	}
	return nil
}

// bySecond adds the line of a run, with the first seed.
func bySecond(p *reproduce.Panel, name string, of runs, numbers func(*outcome) []float64) {
	p.Curve(name, func() (x, y []float64) {
		y = numbers(of.First())
		for k := range y {
			x = append(x, float64(k))
		}
		return x, y
	})
}
