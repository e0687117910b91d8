package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/measuring"
)

// initConfig prints a file for a model repository, with objectives that follow from measurements if measure is set.
func initConfig(e *Env, dir string, measure bool) error {
	if st, err := os.Stat(dir); err == nil && st.Mode().IsRegular() {
		return fault.Errorf(fault.Usage, "%s is a file: init takes a folder with MODEL/1/model.onnx; of one model "+
			"`sluice serve --print-config %s` prints the configuration", dir, dir)
	}
	text, notes, err := config.Init(dir, config.Found{})
	if err != nil {
		return fault.Wrap(fault.Config, err)
	}
	for _, n := range notes {
		fmt.Fprintln(e.Stderr, n)
	}
	if measure {
		// The file names the repository relative to the current folder; its copy elsewhere has it whole.
		whole, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		found, err := proposed(e, func(string) ([]byte, error) {
			text, _, err := config.Init(whole, config.Found{})
			return text, err
		})
		if err != nil {
			return err
		}
		if text, _, err = config.Init(dir, found); err != nil {
			return fault.Wrap(fault.Config, err)
		}
	}
	_, err = e.Stdout.Write(forEditors(text))
	return err
}

// proposed looks at the models of a configuration, in a folder of its own, and returns the objectives that follow, and
// what cannot be loaded. Where they cannot be looked at it says why and returns nothing.
func proposed(e *Env, write func(path string) ([]byte, error)) (found config.Found, _ error) {
	folder, err := os.MkdirTemp("", "sluice-init-")
	if err != nil {
		return found, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "sluice.yaml")
	text, err := write(path)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return found, err
	}
	opened, err := openQuick(e, path, "", false)
	if err == nil {
		profiled, failed := measuring.EnsureProfile(e.Context, opened)
		if e.bar.clear(); failed == nil {
			return config.Found{Objectives: profiled.Objectives(), Broken: profiled.LeftOut()}, nil
		}
		err = failed
	}
	if e.Context.Err() != nil {
		return found, e.Context.Err()
	}
	fmt.Fprintf(e.Stderr, "the models are not run, objectives are not thought of: %v\n", err)
	return found, nil
}
