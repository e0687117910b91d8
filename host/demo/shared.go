package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/host"
	"github.com/sluice-serving/sluice/host/load"
	"github.com/sluice-serving/sluice/measure/loadgen"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/models/digits"
	"github.com/sluice-serving/sluice/planner/capacity"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/systems"
)

// Objectives of the shared demonstration's apps. SharedObjective is the longest.
const (
	digitsObjective = 100 * time.Millisecond
	codesObjective  = 250 * time.Millisecond
	SharedObjective = ScenesObjective
)

// The apps of the shared demonstration, in their order.
const (
	digitsApp = iota
	codesApp
	scenesApp
)

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

// Build trains the models and writes samples and configuration, where they are not there yet.
func (d *Shared) Build(ctx context.Context, o host.Options) (*host.Opened, error) {
	single, err := digits.Build(ctx, filepath.Join(d.Models(), "digits"), Seed, building(o))
	if err != nil {
		return nil, err
	}
	graph, err := digits.BuildSceneModels(ctx, filepath.Join(d.Models(), "scenes"), Seed, building(o))
	if err != nil {
		return nil, err
	}
	if err := d.link(single, graph); err != nil {
		return nil, err
	}
	d.single = d.path("pictures")
	if err := digits.WriteSamples(d.single, single.HeldOut.Seed, ladderSamples); err != nil {
		return nil, err
	}
	d.scenes = digits.Scenes(graph.HeldOut.Seed^1, sceneSamples*digits.MaxDigits, func(i int) int {
		return 1 + i/sceneSamples
	})
	if err := digits.WriteScenes(d.samples(), d.scenes); err != nil {
		return nil, err
	}
	return d.configure(o, func(w io.Writer) error { return sharedConfig(w, single, graph) })
}

// link gives every variant a folder in the repository. Both apps of one stage have the same models.
func (d *Shared) link(single, graph *digits.Ladder) error {
	links := make(map[string]string)
	for _, v := range single.Variants {
		for _, app := range []string{"digits", "codes"} {
			links[app+"-"+v.Name] = filepath.Join("digits", v.Name)
		}
	}
	for _, v := range graph.Variants {
		links[v.Name] = filepath.Join("scenes", v.Name)
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(d.Models(), name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
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
	}{{"digits", digitsObjective}, {"codes", codesObjective}} {
		fmt.Fprintf(&b, "  - name: %s\n    slo: {latency: %v, percentile: 99}\n    queue_limit: 2000\n    variants:\n",
			x.name, x.objective)
		for _, v := range slices.Backward(single.Variants) {
			if slices.Contains(offeredVariants, v.Name) {
				fmt.Fprintf(&b, "      - {name: %s-%s, accuracy: %.4f, max_batch: 32}\n", x.name, v.Name, v.Accuracy)
			}
		}
	}
	b.WriteString(sceneApp(graph))
	b.WriteString("server: {http: \"127.0.0.1:0\", grpc: \"127.0.0.1:0\", admin: \"127.0.0.1:0\"}\n" +
		"telemetry: {log_level: warn}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Measured returns the profile of an earlier run of this machine and these models; ok is false without one.
func (d *Shared) Measured(o *host.Opened) (*host.Profiled, bool) {
	return d.measuredSince(o, filepath.Join("digits", "ladder.json"), filepath.Join("scenes", "ladder.json"))
}

// Load rises for the digits, then scenes grow busy, then the codes take over. Rates are parts of what the machine
// carries with the most accurate variants.
func (d *Shared) Load(p *host.Profiled) workload.Spec {
	spec := p.Spec()
	s := d.Length.Seconds() / 60
	out := workload.Spec{Seed: d.Seed, DurationS: d.Length.Seconds()}
	for a, points := range [][][2]float64{
		digitsApp: {{0, 0.2}, {10, 0.2}, {14, 1.1}, {24, 1.1}, {28, 0.2}, {60, 0.2}},
		codesApp:  {{0, 0.15}, {40, 0.15}, {43, 1.2}, {53, 1.2}, {56, 0.15}, {60, 0.15}},
		scenesApp: {{0, 0.15}, {60, 0.15}},
	} {
		x := workload.AppSpec{
			App: spec.Apps[a].Name, Process: "poisson", Interpolate: "linear", Samples: ladderSamples,
		}
		if a == scenesApp {
			x.Samples = int32(len(d.scenes))
		}
		carried := min(float64(len(spec.Workers))/bestTime(p, serving.AppID(a)), maxRate/3)
		for _, at := range points {
			x.Rates = append(x.Rates, workload.Segment{AtS: at[0] * s, Rate: math.Max(at[1]*carried, 0.5)})
		}
		out.Apps = append(out.Apps, x)
	}
	return out
}

// bestTime returns the seconds of a worker's time that a query of an app takes with the most accurate variants, in
// batches that end within half of the objective.
func bestTime(p *host.Profiled, a serving.AppID) (sum float64) {
	spec := p.Spec()
	rates := make([]float64, len(spec.Apps))
	rates[a] = 1
	asked := capacity.StageDemands(spec, rates)
	for _, s := range spec.Apps[a].Stages {
		v := spec.Stages[s].Variants[0] // the file lists the most accurate first
		within := spec.Apps[a].SLO.Latency / time.Duration(2*len(spec.Apps[a].Stages))
		n := max(profile.BatchLimit(p.Latencies(), spec, v, 0, 1, within), 1)
		sum += asked[s].FanOut * p.Latencies().Latency(v, 0, n, 1).Seconds() / float64(n)
	}
	return sum
}

// Prepare gives every app its pictures, and makes the scenes grow busy in the middle of the run.
func (d *Shared) Prepare(l *load.Loader) error {
	pictures, err := loadgen.LoadSamples(d.single)
	if err != nil {
		return err
	}
	l.Apps[digitsApp].Samples, l.Apps[codesApp].Samples = pictures, pictures
	l.Choose = d.choose
	l.Apps[scenesApp].Judge = d.judge
	l.Options.StageTimings = true
	return nil
}

// choose picks the scene of a query: few digits at first and in the end, many from 26 to 44 s of 60.
func (d *Shared) choose(a *workload.Arrival) {
	if a.App != scenesApp {
		return
	}
	rng := rand.New(rand.NewPCG(d.Seed, uint64(a.At)))
	mean := QuietScene
	if at := 60 * a.At.Seconds() / d.Length.Seconds(); at >= 26 && at < 44 {
		mean = BusyScene
	}
	n := min(max(mean+rng.IntN(3)-1, 1), digits.MaxDigits)
	a.Sample = int32((n-1)*sceneSamples + rng.IntN(sceneSamples))
}

// BestOfPapers simulates the recorded arrivals with the systems of papers, and returns the report of the one with the
// highest utility, under its name. Systems that refuse the configuration are left out.
func (d *Shared) BestOfPapers(ctx context.Context, p *host.Profiled) (best *report.Report, err error) {
	var refused []error
	for _, name := range papersSystems {
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
