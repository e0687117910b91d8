package config

import (
	"bytes"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/tensor"
)

// pythonKinds are the endings of files that are models in Python.
var pythonKinds = []string{".py", ".pt", ".pth", ".pt2", ".joblib", ".ubj", ".json"}

// IsPython reports whether a path that is to be served is a model in Python: FILE.py, FILE.py:CLASS, or a file of
// weights that Python loads.
func IsPython(path string) bool {
	file, _ := SplitPython(path)
	return slices.Contains(pythonKinds, filepath.Ext(file))
}

// PythonApp is a model in Python that is served without a sluice.yaml.
type PythonApp struct {
	Source          string        // FILE or FILE.py:CLASS, as seen from the file to be written
	Objective       time.Duration // 0 where it is not known yet
	MaxBatch        int           // items
	Inputs, Outputs []tensor.Spec // nil where they are not known
}

// Name is the name of the app: that of its class, or of its file.
func (p *PythonApp) Name() string { return pythonName(p.Source) }

// File returns a sluice.yaml that serves the model on this machine.
func (p *PythonApp) File() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# What sluice serves, where, and how fast it has to be.
# docs/configuration.md explains every setting, docs/python.md models in Python.
version: 1

device_types:
  - name: local
    cores: %d
`, max(1, runtime.NumCPU()))
	if m := totalMemory(); m > 0 {
		fmt.Fprintf(&b, "    memory: %s\n", m)
	}
	fmt.Fprintf(&b, `
workers:
  - name: here
    backend: {kind: python}

system: sluice

apps:
  - name: %s
    slo: %s
    variants:
      - python: %s
        max_batch: %d
`, quote(p.Name()), proposedSLO(Duration(p.Objective)), quote(p.Source), max(1, p.MaxBatch))
	writeTensors(&b, "inputs", p.Inputs)
	writeTensors(&b, "outputs", p.Outputs)
	b.WriteString(initTail)
	// A name of a file may be one that no app can have.
	if _, err := Parse(b.Bytes(), "sluice.yaml"); err != nil {
		return nil, fmt.Errorf("%s cannot be served without a configuration: %w", p.Source, err)
	}
	return b.Bytes(), nil
}

func writeTensors(b *bytes.Buffer, key string, specs []tensor.Spec) {
	if len(specs) == 0 {
		return
	}
	fmt.Fprintf(b, "    %s:\n", key)
	for _, s := range specs {
		shape := strings.ReplaceAll(strings.Trim(fmt.Sprint(s.Shape), "[]"), " ", ", ")
		fmt.Fprintf(b, "      - {name: %s, datatype: %s, shape: [%s]}\n", quote(s.Name), s.DType, shape)
	}
}
