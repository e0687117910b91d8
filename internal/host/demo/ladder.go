package demo

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/models/digits"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// LadderObjective is the objective of the ladder's queries.
const LadderObjective = 100 * time.Millisecond

// ladderSamples is the number of labelled pictures. Drawing one takes 2 ms.
const ladderSamples = 300

// Ladder is the demonstration of a ladder of classifiers: variants of one app, the more accurate the slower.
type Ladder struct{ Setting }

// Build writes models, samples and configuration.
func (l *Ladder) Build(o host.Options) (*host.Opened, error) {
	made, err := l.write(digits.Pictures)
	if err != nil {
		return nil, err
	}
	if err := digits.WriteSamples(l.samples(), made.HeldOut.Seed, ladderSamples); err != nil {
		return nil, err
	}
	return l.configure(o, func(w io.Writer) error { return ladderConfig(w, made) })
}

// ladderConfig writes the sluice.yaml: one worker per core, each with the variant of the plan. One core is left to the
// server and the load generator.
func ladderConfig(w io.Writer, l *digits.Ladder) error {
	var b strings.Builder
	fmt.Fprintf(&b,
		`# Written by 'sluice demo'. Try another system:
#   sluice simulate -f sluice.yaml --replay run.jsonl --system clipper
version: 1
device_types: [{name: core, price_per_hour: 0.04, cores: 1}]
workers: [{name: core, count: %d}]
models: {repository: models}
profiles: [profile.json]
apps:
  - name: digits
    slo: {latency: %v, percentile: 99}
    queue_limit: 2000
    variants:
`, workers(), LadderObjective)
	for _, v := range slices.Backward(l.Variants) {
		fmt.Fprintf(&b, "      - {name: %s, accuracy: %.4f, max_batch: 16}\n", v.Name, v.Accuracy)
	}
	b.WriteString(serverSettings)
	_, err := io.WriteString(w, b.String())
	return err
}

// mostWorkers is the most cores that serve: with more, maxRate would leave them idle, and nothing would be shown.
const mostWorkers = 2

// workers is one worker per core that this process may use, less one core.
func workers() int { return min(max(1, runtime.GOMAXPROCS(0)-1), mostWorkers) }

// Capacity is the batch limit of a variant, in items, and the rate in queries/s that it carries on all workers.
func (l *Ladder) Capacity(p *host.Profiled, v serving.VariantID) (limit int, rate float64) {
	limit = max(profile.BatchLimit(p.Latencies(), p.Spec(), v, 0, 1, LadderObjective/2), 1)
	return limit, float64(len(p.Spec().Workers)) * float64(limit) / p.Latencies().Latency(v, 0, limit, 1).Seconds()
}

// Hills are the rates of a load that rises twice, in queries/s.
type Hills struct{ Quiet, First, Second float64 }

// Load has two hills, each a little below the capacity of a step of the ladder: a gentle one up to the second most
// accurate variant, a steep one up to the third.
func (l *Ladder) Load(p *host.Profiled) (workload.Spec, Hills) {
	carried := func(step int) float64 {
		_, rate := l.Capacity(p, serving.VariantID(min(step, len(p.Spec().Variants)-1)))
		return min(rate, maxRate)
	}
	h := Hills{
		Quiet: math.Round(0.5 * carried(0)), First: math.Round(0.75 * carried(1)),
		Second: math.Round(0.75 * carried(2)),
	}
	s := l.Length.Seconds() / 60
	a := workload.AppSpec{
		App: p.Spec().Apps[0].Name, Process: "poisson", Interpolate: "linear", Samples: ladderSamples,
	}
	for _, at := range []struct {
		second, rate float64
	}{
		{0, h.Quiet}, {6, h.Quiet}, {14, h.First}, {20, h.First}, {26, h.Quiet}, {32, h.Quiet}, {36, h.Second},
		{46, h.Second}, {52, h.Quiet}, {60, h.Quiet},
	} {
		a.Rates = append(a.Rates, workload.Segment{AtS: at.second * s, Rate: at.rate})
	}
	return workload.Spec{Seed: l.Seed, DurationS: l.Length.Seconds(), Apps: []workload.AppSpec{a}}, h
}

// Alone simulates the recorded arrivals with the most accurate variant alone, of those that are fast enough at all.
func (l *Ladder) Alone(ctx context.Context, p *host.Profiled) (*report.Report, error) {
	system := p.System()
	system.Planner, system.Scaler, system.Options.Planning = "static", "fixed", systems.Planning{}
	placed := slices.Clone(p.Tables().Placement)
	best := 0 // the file lists the most accurate first
	for best < len(p.Spec().Variants)-1 &&
		p.Latencies().Latency(serving.VariantID(best), 0, 1, 1) > LadderObjective {
		best++
	}
	for i := range placed {
		placed[i].Variants = []serving.VariantID{serving.VariantID(best)}
	}
	planned, err := p.Under(system).WithPlacement(placed).Plan(ctx)
	if err != nil {
		return nil, err
	}
	r, err := l.Predict(planned)
	if err != nil {
		return nil, err
	}
	r.Name = "best-alone"
	return r, nil
}
