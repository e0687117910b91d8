package proteus

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

var study = reproduce.Study[*runner]{
	Name:   "proteus",
	Title:  "Proteus: A High-Throughput Inference-Serving System with Accuracy Scaling (ASPLOS 2024)",
	Solver: true, New: newRunner,
	Figures: []reproduce.Declaration[*runner]{
		{Name: "1", Declare: figure1, Doc: "EfficientNet: accuracy and throughput by device and configuration"},
		{Name: "R", Declare: figureR, OnRequest: true,
			Doc: "the time of a query in the engine, on this machine; when asked for by name"},
		{Name: "4", Declare: figure4,
			Doc: "end to end: accuracy, throughput and violations on four traces, honestly and as the release counts"},
		{Name: "5", Declare: figure5, Doc: "bursts of demand"},
		{Name: "6", Declare: figure6,
			Doc: "batching under uniform, Poisson and gamma arrivals, at 50 to 100 % of capacity"},
		{Name: "7", Declare: figure7, Doc: "ablations"},
		{Name: "8", Declare: figure8, Doc: "objectives from 1 to 3.5 times the fastest CPU variant"},
		{Name: "9", Declare: figure9, Doc: "by model family"},
		{Name: "10", Declare: figure10, Doc: "the integer program by devices, variants and families"},
		{Name: "clumps", Declare: figureClumps, OnRequest: true,
			Doc: "ours: flat, Poisson and clumped arrivals at the rates of a trace, and head-room that follows them"},
	},
}

// Paper returns the experiments of Proteus.
func Paper() reproduce.Paper { return study.Paper() }

// runner collects what the figures need, and keeps what they share. Tests shorten batchingSpan and sizes.
type runner struct {
	*reproduce.Runner
	spec         *serving.Spec
	traces       []*trace
	cluster      *experiment.Environment // the paper's
	batchingSpan time.Duration           // simulated length of the runs of Figure 6
	sizes        []problemSize           // of Figure 10
}

// runs are the results of a job.
type runs = reproduce.Runs[*result]

func newRunner(r reproduce.Request) (*runner, error) {
	run := &runner{Runner: reproduce.NewRunner(r), batchingSpan: 60 * time.Second, sizes: sizes}
	var err error
	if run.cluster, err = newEnvironment(r.Solver, setup{}); err != nil {
		return nil, err
	}
	run.spec = run.cluster.Spec
	run.traces, err = readTraces(run.spec, r.Arrivals)
	return run, err
}

func (run *runner) trace(name string) *trace {
	return run.traces[slices.IndexFunc(run.traces, func(t *trace) bool { return t.name == name })]
}

// add adds a task that runs a job with every seed.
func (run *runner) add(key string, j *job) runs {
	weight := 1
	if !slices.Contains([]string{"fixed", "arrivals"}, j.System.Scaler) {
		weight = 10
	}
	return reproduce.Add(run.Runner, key, j.trace.total()*weight, run.Seeds, j.simulate)
}

// addSystem adds a task that runs a system on a trace in the paper's cluster.
func (run *runner) addSystem(name string, t *trace) runs {
	return run.add(name+" on "+t.name, newJob(run.cluster, reproduce.System(name), t))
}

// totals are the quantities of §6.2.
var totals = []reproduce.Quantity[*result]{
	{Name: accuracyRow, Unit: "%", Of: func(r *result) float64 { return 100 * r.accuracy }},
	{Name: dropRow, Unit: "points", Of: func(r *result) float64 { return 100 * r.drop }},
	{Name: violationRow, Unit: "%", Of: violations},
	{Name: throughputRow, Unit: "/s", Of: func(r *result) float64 { return r.throughput }},
}

const (
	accuracyRow   = "effective accuracy"
	dropRow       = "maximum accuracy drop"
	violationRow  = "SLO violations"
	throughputRow = "throughput"
)

func violations(r *result) float64 { return 100 * r.violations }
