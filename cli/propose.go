package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-serving/sluice/config"
	"github.com/sluice-serving/sluice/host/fault"
)

// initConfig prints a file for a model repository, with objectives that follow from measurements if measure is set.
func initConfig(e *Env, dir string, measure bool) error {
	text, notes, err := config.Init(dir, nil)
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
		objectives, err := proposed(e, func(string) ([]byte, error) {
			text, _, err := config.Init(whole, nil)
			return text, err
		})
		if err != nil {
			return err
		}
		if text, _, err = config.Init(dir, objectives); err != nil {
			return fault.Wrap(fault.Config, err)
		}
	}
	_, err = e.Stdout.Write(text)
	return err
}

// proposed measures the models of a configuration for a second or so each, in a folder of its own, and returns the
// objectives that follow, by app. Where they cannot be measured it says why and returns none.
func proposed(e *Env, write func(path string) ([]byte, error)) (map[string]time.Duration, error) {
	folder, err := os.MkdirTemp("", "sluice-init-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "sluice.yaml")
	text, err := write(path)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	opened, err := openQuick(e, path, "", false)
	if err == nil {
		profiled, failed := opened.EnsureProfile(e.Context)
		if e.bar.clear(); failed == nil {
			return profiled.Objectives(), nil
		}
		err = failed
	}
	if e.Context.Err() != nil {
		return nil, e.Context.Err()
	}
	fmt.Fprintf(e.Stderr, "the models are not measured, objectives are not thought of: %v\n", err)
	return nil, nil
}
