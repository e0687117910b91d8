package cli

import (
	"flag"
	"fmt"
	"path/filepath"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/resources"
)

func importCommand() command {
	return command{
		name: "import", summary: "make a sluice.yaml of another server's models",
		usage: "triton DIR [--out sluice.yaml] | kserve -f FILE [--to resources|config] [--out FILE]",
		about: `
triton reads a Triton model repository. Each ensemble (ensemble_scheduling) becomes an app whose stages are its
steps, each other model an app of its own, also one that is a step. What has no counterpart, or means something else
here, is said, and stands as remarks in the file.
The models stay where they are. Those that run here are run for a second or so each, to propose objectives.
kserve reads InferenceServices, as kubectl get inferenceservice -o yaml prints them, and writes InferenceApps, or a
sluice.yaml. What they lose is listed, and the exit status is then 5.`,
		examples: "sluice import triton /models\nsluice import triton /models --out sluice.yaml && sluice config " +
			"check sluice.yaml\nkubectl get inferenceservice -A -o yaml | sluice import kserve -f - --out apps.yaml",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			out := fs.String("out", "", "`file` to write, which must not be there yet; empty prints it")
			here := fs.Bool("here", false, "leave out models that cannot run in this process, where else all are "+
				"left to a Triton that goes on running")
			asIs := fs.Bool("no-measure", false, "do not run the models to propose objectives")
			limit := fs.Int("model-limit", 0, "most `models` of the repository; instead of 2000")
			file := fs.String("f", "", "with kserve, the `file` to read; - is the standard input")
			to := fs.String("to", "resources", "with kserve, `what` to write: resources (InferenceApps) or config (a "+
				"sluice.yaml)")
			var how resources.Importing
			fs.StringVar(&how.Fleet, "fleet", "default", "with kserve, `name` of the fleet of the apps")
			fs.DurationVar(&how.Objective, "objective", 0, "with kserve, the `latency` that every app gets as its "+
				"objective; 0 proposes 100ms")
			return func(e *Env, args []string) error {
				if len(args) == 1 && args[0] == "kserve" {
					return importKServe(e, *file, *to, *out, how)
				}
				if len(args) != 2 || args[0] != "triton" {
					return fault.Errorf(fault.Usage, "say what to import: triton DIR or kserve -f FILE")
				}
				return importTriton(e, args[1], *out, config.Importing{
					Here: *here, Remarks: true, Models: config.Models{Limit: *limit},
				}, !*asIs)
			}
		},
	}
}

func importTriton(e *Env, dir, out string, how config.Importing, measure bool) error {
	where := out
	if where == "" {
		where = "sluice.yaml" // in the current folder, where the user will put it
	}
	text, notes, err := config.ImportTriton(dir, where, how)
	if err != nil {
		return fault.Wrap(fault.Config, err)
	}
	if measure && config.RunsHere(text) {
		found, err := proposed(e, func(path string) ([]byte, error) {
			whole, err := filepath.Abs(dir)
			if err != nil {
				return nil, err
			}
			text, _, err := config.ImportTriton(whole, path, how)
			return text, err
		})
		if err != nil {
			return err
		}
		how.Objectives = found.Objectives
		if text, notes, err = config.ImportTriton(dir, where, how); err != nil {
			return fault.Wrap(fault.Config, err)
		}
	}
	for _, n := range notes {
		fmt.Fprintln(e.Stderr, n)
	}
	if out == "" {
		_, err = e.Stdout.Write(text)
		return err
	}
	return writeImport(e, out, text)
}

// writeImport writes a sluice.yaml.
func writeImport(e *Env, out string, text []byte) error {
	if err := writeNew(out, text); err != nil {
		return err
	}
	fmt.Fprintf(e.Stdout, "written to %s; check it with 'sluice config check %s'\n", out, out)
	return nil
}
