package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/machines"
)

// configuredPython is configuredFrom for a model in Python. It runs the model's code, which says what the model takes.
func configuredPython(e *Env, source string, objectives map[string]time.Duration) (string, error) {
	path, class := config.SplitPython(source)
	abs, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(abs)
	}
	if err != nil {
		return "", fault.Wrap(fault.Usage, err)
	}
	folder, err := folderOf(e, abs)
	if err != nil {
		return "", err
	}
	app := config.PythonApp{Source: abs}
	if class != "" {
		app.Source += ":" + class
		folder += "-" + class
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return "", err
		}
	}
	app.Objective = objectives[app.Name()]
	about, err := machines.DescribePython(e.Context, app.Source, func(line string) { fmt.Fprintln(e.Stderr, line) })
	if err != nil {
		return "", err
	}
	app.Inputs, app.Outputs, app.MaxBatch = about.Inputs, about.Outputs, about.MaxBatch
	text, err := app.File()
	if err != nil {
		return "", fault.Wrap(fault.Config, err)
	}
	file := filepath.Join(folder, "sluice.yaml")
	return file, os.WriteFile(file, text, 0o600)
}
