package python

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrNoInterpreter is wrapped by errors that mean that no interpreter can run workers.
var ErrNoInterpreter = errors.New("no Python interpreter can run models")

// probe is what an interpreter must be able to do.
const probe = `import sys
assert sys.version_info >= (3, 9), "want Python 3.9 or newer, this is %d.%d" % sys.version_info[:2]
import numpy`

// Interpreters lists where an interpreter is looked for, in this order: SLUICE_PYTHON, an active virtual environment,
// the search path, and the system's.
func Interpreters() []string {
	var out []string
	if own := os.Getenv("SLUICE_PYTHON"); own != "" {
		return []string{own}
	}
	if venv := os.Getenv("VIRTUAL_ENV"); venv != "" {
		out = append(out, VirtualEnvironment(venv))
	}
	return append(out, "python3", "/usr/bin/python3")
}

// VirtualEnvironment returns the interpreter of a virtual environment's folder.
func VirtualEnvironment(folder string) string { return filepath.Join(folder, "bin", "python3") }

// findInterpreter returns the path of the first interpreter that can run workers.
func findInterpreter(ctx context.Context, own string) (string, error) {
	list := Interpreters()
	if own != "" {
		list = []string{own}
	}
	var missing []string
	for _, name := range list {
		path, err := exec.LookPath(name)
		if err == nil {
			if err = tryInterpreter(ctx, path); err == nil {
				return path, nil
			}
		}
		missing = append(missing, fmt.Sprintf("%s: %v", name, err))
	}
	return "", fmt.Errorf("%w: %s. Install Python 3.9 or newer with numpy, or name an interpreter that has it "+
		"(workers[].backend.interpreter, virtual_environment, or SLUICE_PYTHON)", ErrNoInterpreter,
		strings.Join(missing, "; "))
}

func tryInterpreter(ctx context.Context, path string) error {
	ctx, done := context.WithTimeout(ctx, startTimeout)
	defer done()
	c := exec.CommandContext(ctx, path, "-c", probe)
	c.Env, c.WaitDelay = environ(nil), time.Second
	out, err := c.CombinedOutput()
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return fmt.Errorf("%.200s", last)
	}
	return err
}
