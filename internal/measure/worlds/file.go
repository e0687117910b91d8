package worlds

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Names of the files of a world. Files beside them hold arrival times, by the names that the workload gives.
const (
	ConfigName   = "sluice.yaml"
	ProfileName  = "profile.json"
	WorkloadName = "workload.yaml"
)

// ConfigFile returns the world as a sluice.yaml. It says nothing of a system.
func (w *World) ConfigFile() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# World %s, made by 'sluice worlds generate --seed %d': nothing runs here.\n# traits: %s\n# %s\n",
		w.Name, w.Seed, w.TraitList(), w)
	b.WriteString("version: 1\n\ndevice_types:\n")
	counts := make([]int, len(w.Spec.DeviceTypes))
	for _, x := range w.Spec.Workers {
		counts[x.DeviceType]++
	}
	for _, d := range w.Spec.DeviceTypes {
		fmt.Fprintf(&b, "  - {name: %s, cores: %d, memory: %s", d.Name, d.Cores, size(d.MemoryBytes))
		if d.PricePerHour > 0 {
			fmt.Fprintf(&b, ", price_per_hour: %s", number(d.PricePerHour))
		}
		if d.Tenure != serving.TenureUnstated {
			fmt.Fprintf(&b, ", tenure: %s", d.Tenure)
		}
		b.WriteString("}\n")
	}
	b.WriteString("\nworkers:\n")
	for d, n := range counts {
		if n == 0 {
			continue
		}
		name := w.Spec.DeviceTypes[d].Name
		fmt.Fprintf(&b, "  - {name: %s, device_type: %s, count: %d, backend: {kind: fake}}\n", name, name, n)
	}
	fmt.Fprintf(&b, "\nprofiles: [%s]\n\napps:\n", ProfileName)
	for a := range w.Spec.Apps {
		w.app(&b, a)
	}
	return b.String()
}

func (w *World) app(b *strings.Builder, a int) {
	app := &w.Spec.Apps[a]
	fmt.Fprintf(b, "  - name: %s\n    slo: {latency: %s, percentile: %s}\n    demand: %s\n", app.Name,
		duration(app.SLO.Latency), number(app.SLO.Percentile), number(w.Demand[a]))
	if app.Weight != 1 {
		fmt.Fprintf(b, "    weight: %s\n", number(app.Weight))
	}
	if app.Floor > 0 {
		fmt.Fprintf(b, "    accuracy_floor: %s\n", number(app.Floor))
	}
	if app.AccuracyTarget > 0 {
		fmt.Fprintf(b, "    accuracy_target: %s\n", number(app.AccuracyTarget))
	}
	if w.Items[a].Distribution != "" {
		fmt.Fprintf(b, "    items: %s\n", items(&w.Items[a]))
	}
	b.WriteString("    inputs: [{name: x, datatype: FP32, shape: [-1, 1]}]\n" +
		"    outputs: [{name: y, datatype: FP32, shape: [-1, 1]}]\n")
	if len(app.Stages) == 1 {
		w.variants(b, "    ", app.Stages[0])
		return
	}
	b.WriteString("    stages:\n")
	for _, s := range app.Stages {
		st := &w.Spec.Stages[s]
		fmt.Fprintf(b, "      - name: %s\n", st.Name)
		w.variants(b, "        ", s)
		if len(st.Next) > 0 {
			var next []string
			for _, e := range st.Next {
				next = append(next, fmt.Sprintf("{to: %s, fan_out: %s}", w.Spec.Stages[e.To].Name, number(e.FanOut)))
			}
			fmt.Fprintf(b, "        next: [%s]\n", strings.Join(next, ", "))
		}
	}
}

func (w *World) variants(b *strings.Builder, indent string, s serving.StageID) {
	fmt.Fprintf(b, "%svariants:\n", indent)
	for _, v := range w.Spec.Stages[s].Variants {
		x := &w.Spec.Variants[v]
		pads := ""
		if x.Pads {
			pads = ", mask: mask"
		}
		fmt.Fprintf(b, "%s  - {name: %s, accuracy: %s, max_batch: %d, memory: %s%s}\n", indent, x.Name,
			number(x.Accuracy), x.MaxBatch, size(x.MemoryBytes), pads)
	}
}

// WorkloadFile returns the load as a workload file.
func (w *World) WorkloadFile() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The load of world %s.\nseed: %d\nduration_s: %s\napps:\n", w.Name, w.Workload.Seed,
		number(w.Workload.DurationS))
	for i := range w.Workload.Apps {
		x := &w.Workload.Apps[i]
		fmt.Fprintf(&b, "  - app: %s\n", x.App)
		if x.Process != "" {
			fmt.Fprintf(&b, "    process: %s\n", x.Process)
		}
		if x.Shape > 0 {
			fmt.Fprintf(&b, "    shape: %s\n", number(x.Shape))
		}
		if x.Rate > 0 {
			fmt.Fprintf(&b, "    rate: %s\n", number(x.Rate))
		}
		if len(x.Rates) > 0 {
			b.WriteString("    rates:\n")
			for _, s := range x.Rates {
				fmt.Fprintf(&b, "      - {at_s: %s, rate: %s}\n", number(s.AtS), number(s.Rate))
			}
		}
		if x.TraceFile != "" {
			fmt.Fprintf(&b, "    trace: %s\n", x.TraceFile)
		}
		if x.Items.Distribution != "" {
			fmt.Fprintf(&b, "    items: %s\n", items(&x.Items))
		}
		if x.Lengths.Distribution != "" {
			fmt.Fprintf(&b, "    lengths: %s\n", items(&x.Lengths))
		}
	}
	return b.String()
}

// ListFile returns lengths as a file: one to a line.
func ListFile(lengths []int32) string {
	return list(lengths, func(n int32) string { return strconv.Itoa(int(n)) }, "\n") + "\n"
}

// ArrivalsFile returns arrival times as a trace file: milliseconds, one to a line.
func ArrivalsFile(times []serving.Time) string {
	var b strings.Builder
	for _, t := range times {
		b.WriteString(strconv.FormatFloat(float64(t)/1e6, 'f', 3, 64))
		b.WriteByte('\n')
	}
	return b.String()
}

func items(s *workload.ItemsSpec) string {
	out := "{distribution: " + s.Distribution
	for _, x := range []struct {
		name  string
		value float64
	}{
		{"min", float64(s.Min)}, {"max", float64(s.Max)}, {"mu", s.Mu}, {"sigma", s.Sigma},
	} {
		if x.value != 0 {
			out += fmt.Sprintf(", %s: %s", x.name, number(x.value))
		}
	}
	if len(s.Sizes) > 0 {
		out += fmt.Sprintf(", sizes: [%s]", list(s.Sizes, func(n int32) string { return strconv.Itoa(int(n)) }, ", "))
		out += fmt.Sprintf(", weights: [%s]", list(s.Weights, number, ", "))
	}
	if s.File != "" {
		out += ", file: " + s.File
	}
	return out + "}"
}

func list[T any](values []T, text func(T) string, between string) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = text(v)
	}
	return strings.Join(out, between)
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func size(bytes int64) string { return fmt.Sprintf("%dMiB", bytes/mebi) }

func duration(d time.Duration) string { return number(float64(d)/1e6) + "ms" }
