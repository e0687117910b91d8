package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// kindPython is the kind of workers that run models in Python alone.
const kindPython = "python"

const maxEnvironment = 256 // entries

// PythonModel is a model in Python.
type PythonModel struct {
	Path    string // of its file or folder
	Class   string // in a file of Python; empty for its only one
	Options map[string]string
}

// Source is the model as a worker takes it: PATH or PATH:CLASS.
func (m *PythonModel) Source() string {
	if m.Class == "" {
		return m.Path
	}
	return m.Path + ":" + m.Class
}

// bytes is the size of a file of weights; 0 where the size says nothing of the memory that a model takes.
func (m *PythonModel) bytes() int64 {
	st, err := os.Stat(m.Path)
	if err != nil || st.IsDir() || filepath.Ext(m.Path) == ".py" {
		return 0
	}
	return st.Size()
}

// SplitPython returns the file and the class of FILE or FILE.py:CLASS.
func SplitPython(source string) (path, class string) {
	if at := strings.LastIndex(source, ".py:"); at >= 0 {
		return source[:at+3], source[at+4:]
	}
	return source, ""
}

// pythonName is the name of a variant that has none: that of its class, or for a class Model that of its file without
// the ending.
func pythonName(source string) string {
	path, class := SplitPython(source)
	if class != "" && class != "Model" {
		return class
	}
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// python checks a variant in Python. It reports whether it is one.
func (c *checker) python(v *Variant, path string) bool {
	if v.Python == "" {
		c.need(len(v.Options) == 0, path+".options", "are for models in Python: there is none here")
		c.need(!c.f.has(path+".python"), path+".python", "is empty: name a file, or leave it out")
		for i := range c.f.Workers {
			c.need(c.f.Workers[i].Backend.Kind != kindPython, path+".python", "is missing: workers[%d] runs models in "+
				"Python alone (backend.kind)", i)
		}
		return false
	}
	c.need(v.Model == "", path+".model", "give either a model or python")
	c.need(v.Version == "", path+".version", "belongs to models of the repository: this one is in Python")
	return true
}

// processes checks how the processes of models in Python are run.
func (c *checker) processes(b *Backend, path string) {
	if b.Kind == "fake" {
		for _, k := range []string{"interpreter", "virtual_environment", "environment", "processes", "spare_processes",
			"process_memory", "run_timeout"} {
			c.need(!c.f.has(path+"."+k), path+"."+k, "belongs to models in Python, and a fake worker runs none")
		}
	}
	c.need(b.Interpreter == "" || b.VirtualEnvironment == "", path+".virtual_environment",
		"give either an interpreter or a virtual environment")
	c.need(len(b.Environment) <= maxEnvironment, path+".environment", "lists %d variables, want at most %d",
		len(b.Environment), maxEnvironment)
	for k, v := range b.Environment {
		c.need(k != "" && !strings.ContainsAny(k, "=\x00") && !strings.Contains(v, "\x00"),
			join(path+".environment", shown(k)), "is no environment variable")
	}
}

// python finds a model in Python. Where all workers are fake it need not be there.
func (r *resolver) python(v *Variant, path string) *PythonModel {
	m := &PythonModel{Options: v.Options}
	m.Path, m.Class = SplitPython(v.Python)
	m.Path = r.f.Path(m.Path)
	if abs, err := filepath.Abs(m.Path); err == nil {
		m.Path = abs
	}
	if _, err := os.Stat(m.Path); err != nil && slices.ContainsFunc(r.f.Workers, func(w Worker) bool {
		return w.Backend.Kind != "fake"
	}) {
		r.c.addf(path+".python", "there is no file %s", m.Path)
	}
	return m
}
