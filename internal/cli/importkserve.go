package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/resources"
)

// maxKServe bounds what is read of the file; the parser refuses less.
const maxKServe = 8 << 20

func importKServe(e *Env, file, to, out string, how resources.Importing) error {
	if file == "" {
		return fault.Errorf(fault.Usage, "name the file with -f; - is the standard input")
	}
	in := e.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return fault.Wrap(fault.Config, err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxKServe))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var list *resources.List
	var made []byte
	switch to {
	case "resources":
		var b bytes.Buffer
		if list, err = resources.ImportKServe(text, how); err == nil {
			err = list.Write(&b, "")
			made = b.Bytes()
		}
	case "config":
		made, list, err = resources.KServeConfig(text, how, runtime.NumCPU())
	default:
		return fault.Errorf(fault.Usage, "--to is %q: resources or config", to)
	}
	if err != nil {
		return fault.Wrap(fault.Of(err), fmt.Errorf("%s: %w", file, err))
	}
	switch {
	case len(made) == 0:
	case out == "":
		if _, err := e.Stdout.Write(made); err != nil {
			return err
		}
	case to == "config":
		if err := writeImport(e, out, made); err != nil {
			return err
		}
	default:
		if err := writeNew(out, made); err != nil {
			return err
		}
		fmt.Fprintf(e.Stdout, "written to %s; apply it with 'kubectl apply -f %s'\n", out, out)
	}
	return left(e, list)
}
