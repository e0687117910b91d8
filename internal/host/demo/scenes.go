package demo

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/load"
	"github.com/sluice-serving/sluice/internal/host/planning"
	"github.com/sluice-serving/sluice/internal/models/digits"
	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
)

// ScenesObjective is the objective of reading a scene, from end to end.
const ScenesObjective = 250 * time.Millisecond

// The mean number of digits in a scene, at first and in the end.
const (
	QuietScene = 2
	BusyScene  = 6
)

const (
	sceneSamples = 25 // of each number of digits
	// sceneLoad is the utilisation of the machine by the busiest scenes.
	sceneLoad = 0.5
)

// Scenes is the demonstration of a graph of models under one objective: a detector finds the digits of a scene, each is
// cut out, and a reader reads it. The scenes grow busier while it runs.
type Scenes struct {
	Setting
	scenes []digits.Scene
	reading
}

// Build writes models, samples and configuration.
func (s *Scenes) Build(o host.Options) (*host.Opened, error) {
	made, err := s.writeScenes()
	if err != nil {
		return nil, err
	}
	return s.configure(o, func(w io.Writer) error { return scenesConfig(w, made) })
}

// writeScenes writes models and samples. Samples are ordered by their number of digits, so that a busy scene can be
// chosen.
func (s *Scenes) writeScenes() (*digits.Ladder, error) {
	made, err := s.write(digits.SceneModels)
	if err != nil {
		return nil, err
	}
	s.scenes = digits.Scenes(made.HeldOut.Seed^1, sceneSamples*digits.MaxDigits, func(i int) int {
		return 1 + i/sceneSamples
	})
	return made, digits.WriteScenes(s.samples(), s.scenes)
}

// scenesConfig writes the sluice.yaml: one worker per core, and one core left to the server and the load generator.
func scenesConfig(w io.Writer, l *digits.Ladder) error {
	_, err := fmt.Fprintf(w, `# Written by 'sluice demo pipeline'. Try: sluice plan -f sluice.yaml --rates 20
version: 1
device_types: [{name: core, price_per_hour: 0.04, cores: 1}]
workers: [{name: core, count: %d}]
models: {repository: models}
profiles: [profile.json]
system: {name: scrooge, slack: 20ms}
apps:
%s%s`, workers(), sceneApp(l), serverSettings)
	return err
}

// sceneApp returns the entry of the app that reads scenes.
func sceneApp(l *digits.Ladder) string {
	variants := func(stage string, maxBatch int) string {
		var out []string
		for _, v := range slices.Backward(l.Variants) {
			if v.Stage == stage {
				out = append(out, fmt.Sprintf("{name: %s, accuracy: %.4f, max_batch: %d}", v.Name, v.Accuracy,
					maxBatch))
			}
		}
		return strings.Join(out, ", ")
	}
	return fmt.Sprintf(`  - name: scenes
    slo: {latency: %v, percentile: 98}
    queue_limit: 1000
    accuracy_floor: 0.92
    stages:
      - name: %s
        variants: [%s]
        next: [{to: find}]
      - name: find
        function: nms
        with: {score: 0.5, iou: %v, most: %d}
        next: [{to: cut, fan_out: %d, rows: boxes}, {to: where}]
      - name: where
        function: reshape
        with: {shape: 4}
        inputs: {tensor: boxes}
        outputs: {tensor: where}
      - name: cut
        function: crop
        with: {height: %d, width: %d, layout: nchw}
        next: [{to: %s}]
      - name: %s
        variants: [%s]
        inputs: {patch: patches}
`, ScenesObjective, digits.Detect, variants(digits.Detect, 8), digits.Overlap, digits.MaxDigits, QuietScene,
		digits.Box, digits.Box, digits.Read, digits.Read, variants(digits.Read, 16))
}

// Load is a constant rate at which the busiest scenes take a part of the machine's time. busiest is the spec with the
// fan-outs of the busiest scenes.
func (s *Scenes) Load(p *host.Profiled) (load workload.Spec, busiest *serving.Spec) {
	spec := p.Spec()
	fans := make([][]float64, len(spec.Stages))
	for at, st := range spec.Stages {
		for _, e := range st.Next {
			fan := e.FanOut
			if e.Rows != "" {
				fan = BusyScene
			}
			fans[at] = append(fans[at], fan)
		}
	}
	busiest = spec.WithFanOuts(fans)
	var scene time.Duration // of one worker's time
	for at, asked := range capacity.StageDemands(busiest, []float64{1}) {
		scene += time.Duration(asked.FanOut * float64(cheapest(p, serving.StageID(at))))
	}
	rate := math.Max(1, math.Round(min(sceneLoad*float64(len(spec.Workers))/scene.Seconds(), maxRate)))
	return workload.Spec{
		Seed: s.Seed, DurationS: s.Length.Seconds(), Apps: []workload.AppSpec{
			{App: spec.Apps[0].Name, Process: "poisson", Rate: rate, Samples: int32(len(s.scenes))},
		},
	}, busiest
}

// cheapest returns the least worker time of an item at a stage, over all batches and all variants that reach the
// accuracy floor.
func cheapest(p *host.Profiled, s serving.StageID) time.Duration {
	spec := p.Spec()
	best := profile.Unknown
	for _, v := range spec.Stages[s].Variants {
		x := &spec.Variants[v]
		if x.Accuracy < spec.Apps[0].Floor {
			continue
		}
		for items := 1; items <= x.MaxBatch; items++ {
			best = min(best, p.Latencies().Latency(v, 0, items, 1)/time.Duration(items))
		}
	}
	return best
}

// PlanFor returns the plan for the scenes that spec expects, at a rate in scenes/s.
func (s *Scenes) PlanFor(ctx context.Context, p *host.Planned, spec *serving.Spec, rate float64) (planning.Plan,
	error) {
	rates := []float64{rate}
	made, err := p.PlannerInUse().Plan(ctx, plan.Request{Spec: spec, Rates: rates})
	if err != nil {
		return planning.Plan{}, err
	}
	return planning.Describe(spec, p.Latencies(), rates, made), nil
}

// Prepare makes a loader send scenes that grow busier, and check their answers.
func (s *Scenes) Prepare(l *load.Loader) {
	l.Choose = s.choose
	l.Apps[0].Judge = s.judge
}

// choose picks the scene of a query. The number of its digits grows with the time.
func (s *Scenes) choose(a *workload.Arrival) {
	rng := rand.New(rand.NewPCG(s.Seed, uint64(a.At)))
	mean := QuietScene + (BusyScene-QuietScene)*min(a.At.Seconds()/s.Length.Seconds(), 1)
	n := int(math.Round(mean)) + rng.IntN(3) - 1
	n = min(max(n, 1), digits.MaxDigits)
	a.Sample = int32((n-1)*sceneSamples + rng.IntN(sceneSamples))
}
