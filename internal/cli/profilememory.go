package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

// printMemory prints what variants take of device types' memory, and how accelerators were meanwhile.
func printMemory(e *Env, f *profiler.File) {
	if len(f.Memory) > 0 {
		rows := [][]string{{"variant", "device", "loaded", "at batch", "takes", "most"}}
		for _, m := range f.Memory {
			row := []string{m.Variant, m.DeviceType, "", "", "", ""}
			if m.Loaded > 0 {
				row[2] = roundBytes(m.Loaded)
			}
			if m.Batch > 0 {
				row[3], row[4] = strconv.Itoa(m.Batch), roundBytes(m.AtBatch)
			}
			if m.Most > 0 {
				row[5] = strconv.Itoa(m.Most)
			}
			rows = append(rows, row)
		}
		fmt.Fprintln(e.Stdout, "\nMemory; most is the largest batch that there is memory for:")
		_ = columns(e.Stdout, "llrrrr", rows)
	}
	for _, x := range f.Spares {
		fmt.Fprintf(e.Stdout, "\nSpare processes on %s take %s, which plans leave free.\n", x.DeviceType,
			roundBytes(x.Bytes))
	}
	for _, a := range f.Accelerators {
		fmt.Fprintf(e.Stdout, "\n%s, driver %s, %s, while %s was measured: clocks %.0f MHz in the mean, %.0f at "+
			"least, of %.0f; %.0f W of %.0f, %.0f degrees C at most\n", a.Name, a.Driver, roundBytes(a.MemoryBytes),
			a.DeviceType, a.MeanMHz, a.LeastMHz, a.MostMHz, a.MeanWatts, a.LimitWatts, a.MostCelsius)
		if len(a.Throttled) > 0 {
			fmt.Fprintf(e.Stdout, "Its clocks were held down by: %s\n", strings.Join(a.Throttled, ", "))
		}
	}
}
