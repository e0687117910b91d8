package cli

import (
	"flag"
	"fmt"
	"strings"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
	"github.com/sluice-serving/sluice/internal/runtime/device"
	"github.com/sluice-serving/sluice/internal/runtime/native"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
)

const devicesAbout = `
Lists the processor and the accelerators of this machine: memory, clocks and what holds them down, power, and the
processes on them; and the ONNX Runtime that runs models. It asks nvidia-smi; SLUICE_NVIDIA_SMI names another
program. With -f it says which accelerators the workers of a configuration have, and which provider of ONNX Runtime
runs their models.

Exit status 4 with --require, where there are fewer accelerators.`

// devicesReport is what --json prints.
type devicesReport struct {
	device.Machine
	ONNXRuntime *native.Library         `json:"onnx_runtime,omitempty"` // nil where none is found
	Workers     []machines.WorkerDevice `json:"workers,omitempty"`
}

func devicesCommand() command {
	return command{
		name: "devices", summary: "the processor and the accelerators of this machine",
		usage: "[-f sluice.yaml] [--require N] [--json]", about: devicesAbout,
		examples: "sluice devices\nsluice devices --json\n" +
			"sluice devices --require 1 && scripts/measure-accelerator.sh\nsluice devices -f sluice.yaml",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			file := fs.String("f", "", "configuration `file` whose workers are listed, too")
			require := fs.Int("require", 0, "fail without so many accelerators, a `number`")
			asJSON := fs.Bool("json", false, "print JSON")
			return func(e *Env, args []string) error {
				if len(args) > 0 || *require < 0 {
					return fault.Errorf(fault.Usage, "no arguments are taken, and --require is at least 0")
				}
				r := devicesReport{Machine: device.Read(e.Context, device.Tool{Command: e.Getenv(device.EnvTool)})}
				if l, err := onnx.Find(); err == nil {
					r.ONNXRuntime = &l
				}
				if *file != "" {
					opened, err := open(e, *file)
					if err != nil {
						return err
					}
					if r.Workers, err = opened.Fleet().Devices(e.Context); err != nil {
						return err
					}
				}
				var err error
				if *asJSON {
					err = writeJSON(e.Stdout, r)
				} else {
					err = printDevices(e, &r)
				}
				if n := len(r.Accelerators); err == nil && n < *require {
					return fault.Errorf(fault.Missing, "%d accelerators are required, %d are there", *require, n)
				}
				return err
			}
		},
	}
}

func printDevices(e *Env, r *devicesReport) error {
	fmt.Fprintf(e.Stdout, "%s, %d cores", r.CPU, r.Cores)
	if r.MemoryBytes > 0 {
		fmt.Fprintf(e.Stdout, ", %s of memory", roundBytes(r.MemoryBytes))
	}
	fmt.Fprintln(e.Stdout)
	printLibrary(e.Stdout)
	if r.Note != "" {
		fmt.Fprintf(e.Stdout, "No accelerators: %s\n", r.Note)
	} else if err := printAccelerators(e, r.Accelerators); err != nil {
		return err
	}
	if len(r.Workers) == 0 {
		return nil
	}
	fmt.Fprintln(e.Stdout)
	rows := [][]string{{"worker", "device type", "backend", "accelerators", "provider", "instead of"}}
	for _, w := range r.Workers {
		rows = append(rows, []string{
			w.Worker, w.DeviceType, w.Backend, strings.Join(w.Accelerators, " "), w.Provider, w.PassedOver,
		})
	}
	return columns(e.Stdout, "llllll", rows)
}

func printAccelerators(e *Env, list []device.Accelerator) error {
	rows := [][]string{{"", "accelerator", "memory", "used", "clock MHz", "of", "memory MHz", "held down by", "power W",
		"limit", "deg C", "busy", "driver"}}
	for _, a := range list {
		s := &a.State
		rows = append(rows, []string{
			fmt.Sprint(a.Index), a.Name, roundBytes(a.MemoryBytes), roundBytes(s.MemoryUsedBytes),
			known(s.ClockMHz), known(s.MostClockMHz), known(s.MemoryClockMHz), strings.Join(s.Throttled, ", "),
			known(s.Watts), known(s.LimitWatts), known(s.Celsius), quantity.Percent(s.Utilization), a.Driver,
		})
	}
	fmt.Fprintln(e.Stdout)
	if err := columns(e.Stdout, "rlrrrrrlrrrrl", rows); err != nil {
		return err
	}
	processes := [][]string{{"on", "process", "name", "memory"}}
	for _, a := range list {
		for _, p := range a.Processes {
			processes = append(processes, []string{
				fmt.Sprint(a.Index), fmt.Sprint(p.PID), p.Name, roundBytes(p.MemoryUsedBytes),
			})
		}
	}
	if len(processes) == 1 {
		return nil
	}
	fmt.Fprintln(e.Stdout)
	return columns(e.Stdout, "rrlr", processes)
}

// roundBytes writes an amount of memory for people, in GiB or MiB.
func roundBytes(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// known writes a number, and nothing for what the driver does not tell.
func known(x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", x)
}
