package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/load"
	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/internal/models/digits"
	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Objectives of the shared demonstration's apps. SharedObjective is the longest.
const (
	cameraObjective  = 100 * time.Millisecond
	uploadsObjective = 250 * time.Millisecond
	SharedObjective  = ScenesObjective
)

// The apps of the shared demonstration, in their order.
const (
	cameraApp = iota
	uploadsApp
	scenesApp
)

// About says what each app does, in their order.
var About = []string{
	cameraApp:  "reads the one digit in a picture, within " + shown(cameraObjective),
	uploadsApp: "does the same for clients that wait longer, up to " + shown(uploadsObjective),
	scenesApp:  "finds and reads all digits in a picture with several models, within " + shown(SharedObjective),
}

// offeredVariants are the classifiers of the two apps of one stage.
var offeredVariants = []string{"xlarge", "medium", "small", "tiny"}

// papersSystems are the systems of papers that serve apps and graphs with variants; the best of them is drawn beside.
var papersSystems = []string{"proteus", "infaas-accuracy", "scrooge", "loki"}

// Shared is the demonstration of two apps and a graph that share the machine while load, content and mix change. No
// system is named: the default serves.
type Shared struct {
	Scenes
	single string // folder of the labelled pictures
}

// Build writes models, samples and configuration.
func (d *Shared) Build(o host.Options) (*host.Opened, error) {
	single, err := d.write(digits.Pictures)
	if err != nil {
		return nil, err
	}
	d.single = d.path("pictures")
	if err := digits.WriteSamples(d.single, single.HeldOut.Seed, ladderSamples); err != nil {
		return nil, err
	}
	graph, err := d.writeScenes()
	if err != nil {
		return nil, err
	}
	return d.configure(o, func(w io.Writer) error { return sharedConfig(w, single, graph) })
}

// sharedConfig writes the sluice.yaml: one worker per core, and one core left to the server and the load generator.
func sharedConfig(w io.Writer, single, graph *digits.Ladder) error {
	var b strings.Builder
	fmt.Fprintf(&b, `# Written by 'sluice demo'. Try another system:
#   sluice simulate -f sluice.yaml --replay run.jsonl --system proteus
version: 1
device_types: [{name: core, price_per_hour: 0.04, cores: 1}]
workers: [{name: core, count: %d}]
models: {repository: models}
profiles: [profile.json]
apps:
`, workers())
	for _, x := range []struct {
		name      string
		objective time.Duration
	}{{"camera", cameraObjective}, {"uploads", uploadsObjective}} {
		fmt.Fprintf(&b, "  - name: %s\n    slo: {latency: %v, percentile: 99}\n    queue_limit: 2000\n    variants:\n",
			x.name, x.objective)
		for _, v := range slices.Backward(single.Variants) {
			if slices.Contains(offeredVariants, v.Name) {
				fmt.Fprintf(&b, "      - {name: %s, accuracy: %.4f, max_batch: 8}\n", v.Name, v.Accuracy)
			}
		}
	}
	b.WriteString(sceneApp(graph))
	b.WriteString(serverSettings)
	_, err := io.WriteString(w, b.String())
	return err
}

func shown(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// Ladders are the apps whose models stand for each other.
var Ladders = []string{"camera", "uploads"}

// Event is a stretch of the run in which something happens.
type Event struct {
	From, To time.Duration
	Name     string
}

// What happens when, in seconds of a run of a minute.
const (
	cameraFrom, cameraTo   = 8, 24
	scenesFrom, scenesTo   = 26, 40
	uploadsFrom, uploadsTo = 42, 56
	ramp                   = 3
)

// Events are the stretches of the run in which the load of apps, or what is in pictures, grows.
func (d *Shared) Events() []Event {
	at := func(second int) time.Duration { return time.Duration(second) * d.Length / 60 }
	return []Event{
		{at(cameraFrom), at(cameraTo), "more for camera"}, {at(scenesFrom), at(scenesTo), "more, fuller scenes"},
		{at(uploadsFrom), at(uploadsTo), "more for uploads"},
	}
}

// hills are the lowest and highest load of each app, as parts of what the machine carries with the most accurate
// variants, and from when to when it is higher.
var hills = []struct{ low, high, from, to float64 }{
	cameraApp:  {0.2, 1.1, cameraFrom, cameraTo},
	uploadsApp: {0.15, 1.2, uploadsFrom, uploadsTo},
	scenesApp:  {0.15, 0.9, scenesFrom, scenesTo},
}

// Load rises for the camera, then for scenes, which also get fuller, then for the uploads. What the machine carries is
// taken from medians: it may have been disturbed while it was measured, and plans are made with rarer latencies.
func (d *Shared) Load(p *host.Profiled) (workload.Spec, error) {
	spec := p.Spec()
	typical, err := profile.NewTable(spec, p.Measurements(), profile.P50)
	if err != nil {
		return workload.Spec{}, err
	}
	out := workload.Spec{Seed: d.Seed, DurationS: d.Length.Seconds()}
	for a := range hills {
		app := workload.AppSpec{
			App: spec.Apps[a].Name, Process: "poisson", Interpolate: "linear", Samples: ladderSamples,
		}
		if a == scenesApp {
			app.Samples = int32(len(d.scenes))
		}
		carried := min(float64(len(spec.Workers))/bestTime(spec, typical, serving.AppID(a)), maxRate/3)
		app.Rates = d.rates(serving.AppID(a), carried)
		out.Apps = append(out.Apps, app)
	}
	return out, nil
}

// rates are the rates of an app of which the machine carries so many queries/s. They rise and fall within ramp.
func (d *Shared) rates(a serving.AppID, carried float64) (out []workload.Segment) {
	x := hills[a]
	for _, at := range [][2]float64{
		{0, x.low}, {x.from, x.low}, {x.from + ramp, x.high}, {x.to - ramp, x.high}, {x.to, x.low}, {60, x.low},
	} {
		out = append(out, workload.Segment{AtS: at[0] * d.Length.Seconds() / 60, Rate: max(at[1]*carried, 0.5)})
	}
	return out
}

// bestTime returns the seconds of a worker's time that a query of an app takes with the most accurate variants, in
// batches that end within half of the objective.
func bestTime(spec *serving.Spec, latencies profile.Profile, a serving.AppID) (sum float64) {
	rates := make([]float64, len(spec.Apps))
	rates[a] = 1
	asked := capacity.StageDemands(spec, rates)
	for _, s := range spec.Apps[a].Stages {
		v := spec.Stages[s].Variants[0] // the file lists the most accurate first
		within := spec.Apps[a].SLO.Latency / time.Duration(2*len(spec.Apps[a].Stages))
		n := max(profile.BatchLimit(latencies, spec, v, 0, 1, within), 1)
		sum += asked[s].FanOut * latencies.Latency(v, 0, n, 1).Seconds() / float64(n)
	}
	return sum
}

// Prepare gives every app its pictures, and makes the scenes grow busy in the middle of the run.
func (d *Shared) Prepare(l *load.Loader) error {
	pictures, err := loadgen.LoadSamples(d.single)
	if err != nil {
		return err
	}
	l.Apps[cameraApp].Samples, l.Apps[uploadsApp].Samples = pictures, pictures
	l.Choose = d.choose
	l.Apps[scenesApp].Judge = d.judge
	return nil
}

// choose picks the scene of a query: few digits at first and in the end, many in between.
func (d *Shared) choose(a *workload.Arrival) {
	if a.App != scenesApp {
		return
	}
	rng := rand.New(rand.NewPCG(d.Seed, uint64(a.At)))
	mean := QuietScene
	if at := 60 * a.At.Seconds() / d.Length.Seconds(); at >= scenesFrom && at < scenesTo {
		mean = BusyScene
	}
	n := min(max(mean+rng.IntN(3)-1, 1), digits.MaxDigits)
	a.Sample = int32((n-1)*sceneSamples + rng.IntN(sceneSamples))
}

// BestOfPapers simulates the recorded arrivals with the systems of papers, and returns the report of the one with the
// highest utility, under its name. Systems that refuse the configuration are left out.
func (d *Shared) BestOfPapers(ctx context.Context, p *host.Profiled) (best *report.Report, err error) {
	var refused []error
	for i, name := range papersSystems {
		p.Options().Progress(float64(i)/float64(len(papersSystems)), "simulating "+name)
		s, err := systems.Get(name)
		if err != nil {
			return nil, err
		}
		planned, err := p.Under(s).Plan(ctx)
		if err == nil {
			var r *report.Report
			if r, err = d.Predict(planned); err == nil {
				if r.Name = name; best == nil || utility(r) > utility(best) {
					best = r
				}
				continue
			}
		}
		refused = append(refused, fmt.Errorf("%s: %w", name, err))
	}
	if best == nil {
		return nil, errors.Join(refused...)
	}
	return best, nil
}

func utility(r *report.Report) float64 {
	if r.Overall.Utility == nil {
		return 0
	}
	return *r.Overall.Utility
}
