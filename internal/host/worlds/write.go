// Package worlds writes generated worlds (internal/measure/worlds) as the files that every command reads: a
// sluice.yaml, a profile and a workload.
package worlds

import (
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-serving/sluice/internal/host/files"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/measure/worlds"
)

// Write writes a world into a folder, which it makes. Files that are there are replaced.
func Write(folder string, w *worlds.World) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	texts := []struct{ name, text string }{
		{worlds.ConfigName, w.ConfigFile()}, {worlds.WorkloadName, w.WorkloadFile()},
	}
	for _, a := range w.Workload.Apps {
		if a.TraceFile != "" {
			texts = append(texts, struct{ name, text string }{a.TraceFile, worlds.ArrivalsFile(a.Trace)})
		}
		if a.Lengths.File != "" {
			texts = append(texts, struct{ name, text string }{a.Lengths.File, worlds.ListFile(a.Lengths.Listed)})
		}
	}
	for _, x := range texts {
		if err := files.Write(filepath.Join(folder, x.name), func(to io.Writer) error {
			_, err := io.WriteString(to, x.text)
			return err
		}); err != nil {
			return err
		}
	}
	return profileOf(w).WriteFile(filepath.Join(folder, worlds.ProfileName))
}

// profileOf is a world's measurements as a profile file.
func profileOf(w *worlds.World) *profiler.File {
	// A fixed date: equal worlds are equal files.
	out := &profiler.File{Version: profiler.Version, Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	micros := func(d time.Duration) float64 { return float64(d) / 1e3 }
	for _, p := range w.Measurements.Latency {
		out.Points = append(out.Points, profiler.Point{
			Variant: w.Spec.Variants[p.Variant].Name, DeviceType: w.Spec.DeviceTypes[p.DeviceType].Name,
			Batch: p.Items, Concurrency: p.Concurrency, Samples: p.Samples, Mean: micros(p.Mean),
			StdDev: micros(p.StdDev), P50: micros(p.P50), P90: micros(p.P90), P95: micros(p.P95), P99: micros(p.P99),
		})
	}
	for _, l := range w.Measurements.Load {
		out.Loads = append(out.Loads, profiler.Load{
			Variant: w.Spec.Variants[l.Variant].Name, DeviceType: w.Spec.DeviceTypes[l.DeviceType].Name,
			Load: float64(l.Load) / 1e6,
		})
	}
	for _, p := range w.Measurements.Length {
		out.Lengths = append(out.Lengths, profiler.LengthPoint{
			Variant: w.Spec.Variants[p.Variant].Name, DeviceType: w.Spec.DeviceTypes[p.DeviceType].Name,
			Batch: p.Items, Length: p.Length, Reference: p.Reference, Samples: 100, Mean: micros(p.Mean),
		})
	}
	for s := range w.Spec.Stages {
		for k := range w.Spec.Stages[s].Confidences {
			out.Confidences = append(out.Confidences, profiler.NewConfidence(w.Spec, &w.Spec.Stages[s].Confidences[k]))
		}
	}
	return out
}
