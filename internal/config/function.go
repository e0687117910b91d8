package config

import (
	_ "embed"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/internal/models/repository"
)

// Function is a fn.yaml: a model with an objective, for deployment to a running server.
type Function struct {
	// Name that clients use. Required.
	Name string `yaml:"name"`
	// Model is an ONNX file, or a file of Python (`.py`, docs/python.md), relative to this file. Required.
	Model string `yaml:"model"`
	// Class is the class in a file of Python. Default: the only one with a method infer.
	Class string `yaml:"class"`
	// SLO is the latency objective. Required.
	SLO SLO `yaml:"slo"`
	// MaxBatch is the largest number of items of one run. Default: the model's own bound; 64 where it has none.
	MaxBatch int `yaml:"max_batch"`
	// Memory the model needs when loaded. Default: the size of its file.
	Memory Size `yaml:"memory"`
	// MinInstances stay even without any calls. Default: 0.
	MinInstances int `yaml:"min_instances" range:"0..10000"`
	// MaxInstances are there at the most. Default: not limited.
	MaxInstances int `yaml:"max_instances" range:"0..10000"`
	// ColdWait is how long a query may wait for an instance when there is none. It is then late, but answered.
	// Default: 30s; 0s lets it wait for as long as its objective allows.
	ColdWait Duration `yaml:"cold_wait" default:"30s"`
	// Profile says how the model's latency is found out: measure, by running it before it is ready, or predict, by its
	// operators, which takes less time where they have been seen before. It is then measured when nothing is served.
	// Default: measure.
	Profile string `yaml:"profile" oneof:"measure predict"`
	// Labels are remarks of the owner's.
	Labels map[string]string `yaml:"labels"`
}

// InPython reports whether the model is a file of Python.
func (fn *Function) InPython() bool { return filepath.Ext(fn.Model) == ".py" }

// Bounds of a function.
const (
	maxLabels = 64
	maxLabel  = 256 // bytes of a name or a value
)

// FunctionDefaultBatch is the largest batch of a function whose model sets no bound.
const FunctionDefaultBatch = defaultMaxBatch

//go:embed function.yaml
var functionTemplate []byte

// FunctionTemplate returns a fn.yaml with every setting, each with a comment. The slice is the caller's.
func FunctionTemplate() []byte { return slices.Clone(functionTemplate) }

// ParseFunction reads a fn.yaml as Parse does a sluice.yaml. Model is returned as a path that can be opened.
func ParseFunction(data []byte, path string) (*Function, error) {
	f := &File{name: path, dir: filepath.Dir(path), lines: map[string]int{}}
	c := &checker{f: f, bad: map[string]bool{}}
	var fn Function
	if !c.read(data, &fn, "") {
		return nil, c.err()
	}
	f.declaredDefaults(&fn)
	c.function(&fn)
	if err := c.err(); err != nil {
		return nil, err
	}
	fn.Model = f.Path(fn.Model)
	return &fn, nil
}

func (c *checker) function(fn *Function) {
	if c.name(names{}, fn.Name, "name") {
		if err := repository.CheckName(fn.Name); err != nil {
			c.addf("name", "%v", err)
		}
	}
	c.need(fn.Model != "", "model", "is missing: name the ONNX file to deploy")
	c.need(fn.Class == "" || fn.InPython(), "class", "belongs to a file of Python, and the model is none")
	if !c.f.has("slo.latency") {
		c.addf("slo.latency", "is missing: within which time is a query to be answered, such as 100ms?")
	}
	c.need(!fn.SLO.Proposed, "slo.proposed", "is true: the objective of a function is what its file says")
	c.settings(fn)
	c.need(fn.MaxBatch >= 0 && fn.MaxBatch <= repository.MaxMaxBatch, "max_batch",
		"is %d, want 1 to %d, or leave it out", fn.MaxBatch, repository.MaxMaxBatch)
	c.need(fn.MaxBatch > 0 || !c.f.has("max_batch"), "max_batch", "is 0, want at least 1, or leave it out")
	c.instances(fn.MinInstances, fn.MaxInstances, "")
	c.need(len(fn.Labels) <= maxLabels, "labels", "lists %d, want at most %d", len(fn.Labels), maxLabels)
	for k, v := range fn.Labels {
		bad := func(s string) bool {
			return len(s) > maxLabel || strings.ContainsFunc(s, func(r rune) bool {
				return r < ' ' || r == 0x7f || r == 0xfffd
			})
		}
		c.need(!bad(k) && !bad(v), join("labels", shown(k)), "want at most %d bytes without control characters",
			maxLabel)
	}
}
