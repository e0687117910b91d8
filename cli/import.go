package cli

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluice-serving/sluice/config"
	"github.com/sluice-serving/sluice/host/fault"
)

func importCommand() command {
	return command{
		name: "import", summary: "make a sluice.yaml of another server's models",
		usage: "triton DIR [--out sluice.yaml]",
		about: `
triton reads a Triton model repository. Each ensemble (ensemble_scheduling) becomes an app whose stages are its
steps, each other model an app of its own. What has no counterpart is said, and stands as remarks in the file.
The models stay where they are. Those that run here are run for a second or so each, to propose objectives.`,
		examples: "sluice import triton /models\nsluice import triton /models --out sluice.yaml && sluice config " +
			"check sluice.yaml",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			out := fs.String("out", "", "`file` to write, which must not be there yet; empty prints it")
			here := fs.Bool("here", false, "leave out models that cannot run in this process, where else all are "+
				"left to a Triton that goes on running")
			asIs := fs.Bool("no-measure", false, "do not run the models to propose objectives")
			return func(e *Env, args []string) error {
				if len(args) != 2 || args[0] != "triton" {
					return fault.Errorf(fault.Usage, "say what to import: triton DIR")
				}
				return importTriton(e, args[1], *out, config.Importing{Here: *here}, !*asIs)
			}
		},
	}
}

func importTriton(e *Env, dir, out string, how config.Importing, measure bool) error {
	where := out
	if where == "" {
		where = "sluice.yaml" // in the current folder, where the user will put it
	}
	text, notes, err := config.ImportTritonFor(dir, where, how)
	if err != nil {
		return fault.Wrap(fault.Config, err)
	}
	if measure && config.RunsHere(text) {
		how.Objectives, err = proposed(e, func(path string) ([]byte, error) {
			whole, err := filepath.Abs(dir)
			if err != nil {
				return nil, err
			}
			text, _, err := config.ImportTritonFor(whole, path, how)
			return text, err
		})
		if err != nil {
			return err
		}
		if text, notes, err = config.ImportTritonFor(dir, where, how); err != nil {
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
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fault.Errorf(fault.Config, "%s is there already: name another file with --out", out)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		fmt.Fprintf(e.Stdout, "written to %s; check it with 'sluice config check %s'\n", out, out)
	}
	return err
}
