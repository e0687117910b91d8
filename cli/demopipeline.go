package cli

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/measure/loadgen"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/models/digits"
	"github.com/sluice-serving/sluice/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/tensor"
)

const (
	sceneSLO     = 250 * time.Millisecond
	sceneSamples = 100 // of each number of digits
	// quiet and busy are how many digits a scene has at first and in the end, in the mean.
	quietScene, busyScene = 2, 6
	// sceneLoad is the part of the machine's time that the busiest scenes are to take.
	sceneLoad = 0.5
)

// sceneDemo is the demo of a pipeline: it shares the steps of demo, and reads scenes instead of digits.
type sceneDemo struct {
	*demo
	ladder *digits.Ladder
	scenes []digits.Scene

	mu     sync.Mutex
	digits tally
}

// tally counts digits.
type tally struct{ there, found, right int }

func (d *sceneDemo) run(e *Env) error {
	w, err := d.world(e)
	if err != nil {
		return err
	}
	if err := d.profile(e, w); err != nil {
		return err
	}
	spec, busiest := d.load(w)
	if err := d.plan(e, w, busiest, spec.Apps[0].Rate); err != nil {
		return err
	}
	run, err := startServer(e, w)
	if err != nil {
		return err
	}
	var used report.Usage
	live, err := d.drive(e, w, run, &spec, func(l *loader) {
		l.choose = d.choose
		l.list[0].Judge, l.options.StageTimings = d.judge, true
	}, func() {
		run.plane.Inspect(func(en *engine.Engine) { used = en.Usage(run.plane.Now()) })
	})
	if err != nil {
		return err
	}
	return d.tell(e, w, live, used)
}

// world makes the models and the configuration, where they are not there yet.
func (d *sceneDemo) world(e *Env) (*world, error) {
	models := d.path("models")
	fmt.Fprintf(d.say, "1. models: detectors that find digits in a scene and readers of one, in %s\n", models)
	bar := newProgress(e)
	ladder, err := digits.BuildScenery(e.Context, models, demoSeed, func(stage string, done, total float64) {
		bar.show(done/math.Max(total, 1e-9), stage)
	})
	bar.done()
	if err != nil {
		return nil, err
	}
	d.ladder = ladder
	// The samples lie by their number of digits, so that a busy scene can be asked for.
	d.scenes = digits.Scenes(ladder.HeldOut.Seed^1, sceneSamples*digits.MostDigits, func(i int) int {
		return 1 + i/sceneSamples
	})
	if err := digits.WriteScenes(d.path("samples"), d.scenes); err != nil {
		return nil, err
	}
	file := d.path("sluice.yaml")
	if err := create(file, func(w io.Writer) error { return sceneConfig(w, ladder) }); err != nil {
		return nil, err
	}
	return openWorld(e, file)
}

// sceneConfig writes the demo's sluice.yaml: a worker a core, and one core left to the front end and the load
// generator.
func sceneConfig(w io.Writer, l *digits.Ladder) error {
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
	_, err := fmt.Fprintf(w, `# Written by 'sluice demo pipeline'. Try: sluice plan -f sluice.yaml --rates 20
version: 1
device_types: [{name: core, price_per_hour: 0.04, cores: 1}]
workers: [{name: core, count: %d}]
models: {repository: models}
profiles: [profile.json]
system: {name: scrooge, slack: 20ms}
apps:
  - name: scenes
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
server: {http: "127.0.0.1:0", grpc: "127.0.0.1:0", admin: "127.0.0.1:0"}
telemetry: {log_level: warn}
`, max(1, runtime.NumCPU()-1), sceneSLO, digits.Detect, variants(digits.Detect, 8), digits.Overlap, digits.MostDigits,
		quietScene,
		digits.Box, digits.Box, digits.Read, digits.Read, variants(digits.Read, 16))
	return err
}

// load is a constant rate at which the busiest scenes take a part of the machine's time; busiest is how many items then
// reach each stage for a scene.
func (d *sceneDemo) load(w *world) (spec workload.Spec, busiest *serving.Spec) {
	fans := make([][]float64, len(w.Spec.Stages))
	for s, st := range w.Spec.Stages {
		for _, e := range st.Next {
			fan := e.FanOut
			if e.Rows != "" {
				fan = busyScene
			}
			fans[s] = append(fans[s], fan)
		}
	}
	busiest = w.Spec.WithFanOuts(fans)
	var scene time.Duration // of one worker's time
	for s, asked := range capacity.StageDemands(busiest, []float64{1}) {
		scene += time.Duration(asked.FanOut * float64(d.cheapest(w, serving.StageID(s))))
	}
	rate := math.Max(1, math.Round(min(sceneLoad*float64(len(w.Spec.Workers))/scene.Seconds(), demoCeiling)))
	fmt.Fprintf(d.say,
		"\n3. load: %.0f scenes/s for %v, Poisson arrivals, objective %v from end to end; scenes grow from %d digits "+
			"to %d\n", rate, d.length, d.slo, quietScene, busyScene)
	return workload.Spec{
		Seed: d.seed, DurationS: d.length.Seconds(), Apps: []workload.AppSpec{
			{App: w.Spec.Apps[0].Name, Process: "poisson", Rate: rate, Samples: int32(len(d.scenes))},
		},
	}, busiest
}

// cheapest is the least time of a worker that an item of a stage takes, at any batch, on a variant that is good enough.
func (d *sceneDemo) cheapest(w *world, s serving.StageID) time.Duration {
	best := profile.Unknown
	for _, v := range w.Spec.Stages[s].Variants {
		x := &w.Spec.Variants[v]
		if x.Accuracy < w.Spec.Apps[0].Floor {
			continue
		}
		for items := 1; items <= x.MaxBatch; items++ {
			best = min(best, w.profile.Latency(v, 0, items, 1)/time.Duration(items))
		}
	}
	return best
}

// choose picks the scene that a query brings: how busy it is grows with the time.
func (d *sceneDemo) choose(a *workload.Arrival) {
	rng := rand.New(rand.NewPCG(d.seed, uint64(a.At)))
	mean := quietScene + (busyScene-quietScene)*min(a.At.Seconds()/d.length.Seconds(), 1)
	n := int(math.Round(mean)) + rng.IntN(3) - 1
	n = min(max(n, 1), digits.MostDigits)
	a.Sample = int32((n-1)*sceneSamples + rng.IntN(sceneSamples))
}

// judge holds an answer against the scene: it is right when all digits were found where they are and read rightly, and
// nothing besides.
func (d *sceneDemo) judge(outputs []tensor.Tensor, sample int) bool {
	var centres [][2]float32
	var labels []int64
	for _, o := range outputs {
		switch {
		case o.Name == "where" && o.DType == tensor.FP32:
			for b := o.Data; len(b) >= 16; b = b[16:] {
				at := func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])) }
				centres = append(centres, [2]float32{(at(0) + at(2)) / 2, (at(1) + at(3)) / 2})
			}
		case o.Name == "label" && o.DType == tensor.Int64:
			for b := o.Data; len(b) >= 8; b = b[8:] {
				labels = append(labels, int64(binary.LittleEndian.Uint64(b)))
			}
		}
	}
	scene := &d.scenes[sample]
	right := 0
	for i, of := range scene.Match(centres) {
		if of >= 0 && i < len(labels) && labels[i] == scene.Digits[of].Label {
			right++
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.digits.there += len(scene.Digits)
	d.digits.found += len(centres)
	d.digits.right += right
	return right == len(scene.Digits) && right == len(centres)
}

// tell simulates the recorded scenes and prints everything.
func (d *sceneDemo) tell(e *Env, w *world, live *loadgen.Result, used report.Usage) error {
	s := simulation{world: w, seed: d.seed, delay: demoPlanDelay}
	_, predicted, err := s.twin(d.path("run.jsonl"))
	if err != nil {
		return err
	}
	names, reports := []string{"live", "simulated"}, []*report.Report{live.Report, predicted}
	files, err := saveReports(d.dir, "sluice demo pipeline: live and simulated", names, reports)
	if err != nil {
		return err
	}
	hours := d.length.Hours()
	n := &d.digits
	reading := map[string]any{
		"digits": n.there, "found": n.found, "right": n.right, "precision": share(n.right, n.found),
		"recall": share(n.right, n.there),
	}
	if d.asJSON {
		return writeJSON(e.Stdout, map[string]any{
			"live": live, "simulated": predicted, "differences": report.Compare(live.Report, predicted),
			"reading": reading, "cost_per_hour": used.Dollars / hours, "files": files,
		})
	}
	fmt.Fprintf(e.Stdout, "4. what was served, and what the simulator predicts for the same scenes\n\n")
	if err := report.SideBySide(e.Stdout, names, reports); err != nil {
		return err
	}
	if err := printStageUse(e.Stdout, live); err != nil {
		return err
	}
	printSending(e.Stdout, live)
	fmt.Fprintf(e.Stdout,
		"\n%d digits in the answered scenes: %d found, %d of them found and read rightly (precision %.1f %%, recall "+
			"%.1f %%)\n", n.there, n.found, n.right, 100*share(n.right, n.found), 100*share(n.right, n.there))
	fmt.Fprintf(e.Stdout, "the machine's cores cost %.4f $/h while it was served\n\n", used.Dollars/hours)
	for _, f := range append(files, d.path("run.jsonl")) {
		fmt.Fprintf(e.Stdout, "written: %s\n", f)
	}
	fmt.Fprintf(e.Stdout,
		"try: bin/sluice serve -f %[1]s   bin/sluice simulate -f %[1]s --replay %[2]s --system nexus\n",
		d.path("sluice.yaml"), d.path("run.jsonl"))
	return nil
}

func share(part, whole int) float64 { return float64(part) / float64(max(whole, 1)) }

// plan shows what the stages are given for quiet scenes and for busy ones.
func (d *sceneDemo) plan(e *Env, w *world, busiest *serving.Spec, rate float64) error {
	for _, x := range []struct {
		spec   *serving.Spec
		digits int
	}{{w.Spec, quietScene}, {busiest, busyScene}} {
		as, tables := *w, *w.World
		as.World, tables.Spec = &tables, x.spec
		rates := []float64{rate}
		p, err := w.planner.Plan(e.Context, plan.Request{Spec: x.spec, Rates: rates})
		if err != nil {
			return err
		}
		v := planView{}
		v.read(&as, &step{rates: rates}, p)
		fmt.Fprintf(d.say, "\n   the plan for scenes of %d digits: %.4f $/h, of which %.4f is used\n", x.digits,
			v.CostPerHour, *v.CostUsed)
		if err := printStages(d.say, &v); err != nil {
			return err
		}
	}
	return nil
}
