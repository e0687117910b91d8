package cli

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"

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
The models stay where they are.`,
		examples: "sluice import triton /models\nsluice import triton /models --out sluice.yaml && sluice config " +
			"check sluice.yaml",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			out := fs.String("out", "", "`file` to write, which must not be there yet; empty prints it")
			return func(e *Env, args []string) error {
				if len(args) != 2 || args[0] != "triton" {
					return fault.Errorf(fault.Usage, "say what to import: triton DIR")
				}
				return importTriton(e, args[1], *out)
			}
		},
	}
}

func importTriton(e *Env, dir, out string) error {
	where := out
	if where == "" {
		where = "sluice.yaml" // in the current folder, where the user will put it
	}
	text, notes, err := config.ImportTriton(dir, where)
	if err != nil {
		return fault.Wrap(fault.Config, err)
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
