package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
)

// What is believed of a variant that nobody has measured. The engine learns while it serves, so that these decide only
// how a new app begins.
const (
	believedShare = 4                      // of the objective's latency that one item takes, divided by the stages
	believedItems = 8                      // further items of a batch that take as long as the first
	bytesPerTime  = 4 << 30                // bytes of a model that a run passes over in a second
	believedLoad  = 5 * time.Second        // to load and warm up
	leastBelieved = 200 * time.Microsecond // for one item
	functionTime  = 200 * time.Microsecond // of a function for one item
	mostScaling   = 4                      // by which latency differs between machine types at most
	defaultBatch  = 64                     // of variants that say nothing
)

// target is a machine type or a part of one.
type target struct {
	name         string
	cores        int32
	accelerators bool
}

// ModelOf names what a profile was measured of: the digest of the model, or its URI.
func ModelOf(m *v1alpha1.Model) string { return cmp.Or(m.SHA256, m.URI) }

// profile makes the file of latencies: what was measured, and for the rest what is believed.
func (r *rendering) profile() (string, error) {
	out := &profiler.File{Version: profiler.Version, Points: []profiler.Point{}, Loads: []profiler.Load{}}
	var targets []target
	for i, t := range r.types {
		if i > 0 && r.types[i-1] == t {
			continue // its parts are there with it
		}
		targets = append(targets, targetsOf(t)...)
	}
	known := index(r.in.Profiles)
	for _, a := range r.apps {
		for i := range a.Spec.Stages {
			if st := &a.Spec.Stages[i]; st.Function != "" {
				for _, on := range targets {
					addPoints(out, stageName(a, st.Name), on.name, growing(functionTime, defaultBatch))
				}
			}
		}
		eachVariant(a, func(stage string, v *v1alpha1.Variant) {
			name := cell.ModelName(a.Name, stage, v.Name)
			for _, on := range targets {
				pair := Pair{a.Name, stage, v.Name, on.name}
				if p := known[pair]; p != nil && p.Spec.Model == ModelOf(&v.Model) {
					addMeasured(out, name, on.name, &p.Spec)
					continue
				}
				r.out.Believed = append(r.out.Believed, pair)
				addPoints(out, name, on.name, believe(a, v, pair, on, targets, known))
				out.Loads = append(out.Loads, profiler.Load{
					Variant: name, DeviceType: on.name, Load: float64(believedLoad.Milliseconds()),
				})
			}
		})
	}
	if err := out.Validate(); err != nil {
		return "", err
	}
	var b bytes.Buffer // in one line: a ConfigMap has room for a mebibyte
	if err := json.NewEncoder(&b).Encode(out); err != nil {
		return "", err
	}
	return b.String(), nil
}

func targetsOf(t *v1alpha1.MachineType) []target {
	out := []target{{t.Name, max(t.Spec.Cores, 1), len(t.Spec.Accelerators) > 0}}
	for _, p := range t.Spec.Parts {
		out = append(out, target{p.Name, p.Cores, p.Percent > 0})
	}
	return out
}

// index finds profiles by what they measured. Where two have the same, the one that was measured last counts.
func index(list []*v1alpha1.Profile) map[Pair]*v1alpha1.Profile {
	out := make(map[Pair]*v1alpha1.Profile, len(list))
	for _, p := range sorted(list) {
		key := Pair{p.Spec.App, p.Spec.Stage, p.Spec.Variant, p.Spec.MachineType}
		if before := out[key]; before == nil || !p.Spec.Measured.Before(before.Spec.Measured) {
			out[key] = p
		}
	}
	return out
}

// batchTime is what a batch of a size takes.
type batchTime struct {
	items    int
	mean     time.Duration
	p95      time.Duration
	deviates time.Duration
	runs     int
}

// growing are the batches up to a size, of which one item takes first.
func growing(first time.Duration, most int) (out []batchTime) {
	for items := 1; ; items *= 4 {
		items = min(items, most)
		mean := first + first*time.Duration(items-1)/believedItems
		out = append(out, batchTime{items, mean, mean, 0, 1})
		if items == most {
			return out
		}
	}
}

// believe says what a variant takes on a machine type where nobody has measured it: what it takes on another type,
// scaled by cores; or as long as it takes to pass over its memory; or a part of the objective, which its author had
// in mind.
func believe(a *v1alpha1.InferenceApp, v *v1alpha1.Variant, pair Pair, on target, targets []target,
	known map[Pair]*v1alpha1.Profile) []batchTime {
	var best *v1alpha1.Profile
	var from target
	for _, t := range targets {
		key := pair
		key.MachineType = t.name
		p := known[key]
		if p == nil || p.Spec.Model != ModelOf(&v.Model) || t.accelerators != on.accelerators && best != nil {
			continue
		}
		if best == nil || t.accelerators == on.accelerators &&
			(from.accelerators != on.accelerators || apart(t.cores, on.cores) < apart(from.cores, on.cores)) {
			best, from = p, t
		}
	}
	if best != nil {
		scale := 1.0
		if !on.accelerators && !from.accelerators {
			scale = min(max(float64(from.cores)/float64(on.cores), 1.0/mostScaling), mostScaling)
		}
		var out []batchTime
		for _, b := range times(&best.Spec) {
			out = append(out, batchTime{
				b.items, times64(b.mean, scale), times64(b.p95, scale), times64(b.deviates, scale), 1,
			})
		}
		return out
	}
	most := defaultBatch
	if v.MaxBatch > 0 {
		most = int(v.MaxBatch)
	}
	first := a.Spec.Objective.Latency.Duration / time.Duration(believedShare*max(len(a.Spec.Stages), 1))
	if v.Memory != nil {
		first = min(first, time.Duration(v.Memory.AsApproximateFloat64()/bytesPerTime*float64(time.Second)))
	}
	return growing(max(first, leastBelieved), most)
}

func times64(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }

// apart is by which factor two numbers of cores differ.
func apart(a, b int32) float64 { return float64(max(a, b)) / float64(max(min(a, b), 1)) }

// times are the latencies of a profile, ascending.
func times(p *v1alpha1.ProfileSpec) (out []batchTime) {
	for _, l := range p.Latencies {
		out = append(out, batchTime{
			int(l.Batch), l.Mean.Duration, max(l.P95.Duration, l.Mean.Duration), l.Deviation.Duration,
			max(int(l.Runs), 1),
		})
	}
	slices.SortFunc(out, func(a, b batchTime) int { return a.items - b.items })
	return out
}

func addMeasured(out *profiler.File, variant, device string, p *v1alpha1.ProfileSpec) {
	addPoints(out, variant, device, times(p))
	if p.Load != nil {
		out.Loads = append(out.Loads, profiler.Load{
			Variant: variant, DeviceType: device, Load: float64(p.Load.Duration) / float64(time.Millisecond),
		})
	}
}

func addPoints(out *profiler.File, variant, device string, list []batchTime) {
	for _, b := range list {
		mean := micros(b.mean)
		p95 := max(micros(b.p95), mean)
		out.Points = append(out.Points, profiler.Point{
			Variant: variant, DeviceType: device, Batch: b.items, Concurrency: 1, Samples: b.runs,
			Mean: mean, StdDev: max(0, float64(b.deviates)/float64(time.Microsecond)),
			P50: mean, P90: p95, P95: p95, P99: p95,
		})
	}
}

// micros is a latency in microseconds, at least what a profile may have.
func micros(d time.Duration) float64 { return max(float64(d)/float64(time.Microsecond), 0.001) }
