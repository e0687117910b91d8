package device

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	mib = 1 << 20
	// mostAccelerators is how many are read of one machine.
	mostAccelerators = 1024
)

// parseAccelerators reads what nvidia-smi writes for --query-gpu with these fields. What it does not know of an
// accelerator it writes as [N/A] or [Not Supported].
func parseAccelerators(text string, fields []string) ([]Accelerator, error) {
	var out []Accelerator
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line == "No devices were found" {
			continue
		}
		cells := strings.Split(line, ",")
		if len(cells) != len(fields) {
			return nil, fmt.Errorf("line %q has %d fields, want %d", line, len(cells), len(fields))
		}
		if len(out) == mostAccelerators {
			return nil, fmt.Errorf("lists more than %d accelerators", mostAccelerators)
		}
		var a Accelerator
		for k, cell := range cells {
			if err := a.set(fields[k], strings.TrimSpace(cell)); err != nil {
				return nil, err
			}
		}
		out = append(out, a)
	}
	return out, nil
}

func (a *Accelerator) set(field, cell string) error {
	s := &a.State
	switch field {
	case "index":
		n, err := strconv.Atoi(cell)
		if err != nil || n < 0 {
			return fmt.Errorf("index is %q, want a number", cell)
		}
		a.Index = n
	case "uuid":
		a.UUID = cell
	case "name":
		a.Name = cell
	case "driver_version":
		a.Driver = cell
	case "compute_cap":
		if number(cell) > 0 {
			a.Capability = cell
		}
	case "memory.total":
		a.MemoryBytes = bytesOf(cell)
	case "memory.used":
		s.MemoryUsedBytes = bytesOf(cell)
	case "clocks.sm":
		s.ClockMHz = number(cell)
	case "clocks.max.sm":
		s.MostClockMHz = number(cell)
	case "clocks.mem":
		s.MemoryClockMHz = number(cell)
	case "power.draw":
		s.Watts = number(cell)
	case "power.limit":
		s.LimitWatts = number(cell)
	case "temperature.gpu":
		s.Celsius = number(cell)
	case "utilization.gpu":
		s.Utilization = number(cell) / 100
	case "clocks_event_reasons.active", "clocks_throttle_reasons.active":
		if bits, err := strconv.ParseUint(strings.TrimPrefix(cell, "0x"), 16, 64); err == nil {
			s.Throttled = throttled(bits)
		}
	}
	return nil
}

// addProcesses reads what nvidia-smi writes for --query-compute-apps: UUID, process, name (with any commas), MiB. Lines
// that it cannot read are left out.
func addProcesses(to []Accelerator, text string) {
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), ",")
		if len(cells) < 4 {
			continue
		}
		last := len(cells) - 1
		pid, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue
		}
		for i := range to {
			if to[i].UUID == strings.TrimSpace(cells[0]) {
				to[i].Processes = append(to[i].Processes, Process{
					PID: pid, Name: strings.TrimSpace(strings.Join(cells[2:last], ",")),
					MemoryUsedBytes: bytesOf(strings.TrimSpace(cells[last])),
				})
			}
		}
	}
}

// number reads a number of at least 0; 0 where there is none.
func number(cell string) float64 {
	x, err := strconv.ParseFloat(cell, 64)
	if err != nil || !(x >= 0) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

// bytesOf reads so many MiB; 0 where there is no such number, or one that no accelerator has.
func bytesOf(cell string) int64 {
	if x := number(cell); x < 1<<40 {
		return int64(x) * mib
	}
	return 0
}
