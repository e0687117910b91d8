package python

import (
	"strings"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Model is what stands behind a variant.
type Model struct {
	Name string // for the log
	// Source is FILE.py, FILE.py:CLASS, or a file or folder that a ready-made loader of sluice_worker knows.
	Source  string
	Options map[string]string // for the class
	// Inputs and Outputs are those that a configuration lists, for models that do not say; nil for none.
	Inputs, Outputs []tensor.Spec
}

// class is the class that the source names, with a space before it; "" where it names none.
func (m *Model) class() string {
	if at := strings.LastIndexByte(m.Source, ':'); at >= 0 && at+1 < len(m.Source) {
		return " " + m.Source[at+1:]
	}
	return ""
}

// Config says how processes are run.
type Config struct {
	Interpreter string // path or name; "" takes the first of Interpreters that can run workers
	// Environment is added to that of the processes. Of this process's environment they have what packages need
	// (inherited), and not the rest, which can hold secrets.
	Environment map[string]string
	// ForInstance returns what else the processes of an instance have in their environment, such as the accelerators
	// that they may use; nil for nothing.
	ForInstance func(dataplane.InstanceSpec) map[string]string
	// Processes is how many an instance has for each of its variants; 0 is one for each of its slots.
	Processes int
	// Memory is what a process and those that it starts may take, in bytes; 0 is no limit. One that is above it after a
	// batch is replaced; one that is above one and a half times that much is ended at once.
	Memory int64
	// Spares is how many processes wait that have imported the frameworks of the models that were launched last, so
	// that the next one that needs them starts sooner.
	Spares int
	// RunTimeout is how long a process may run one batch; 0 leaves that to the data plane.
	RunTimeout time.Duration
	Models     map[serving.VariantID]Model
	// Log takes what processes print, line by line, and what becomes of them; nil for nothing.
	Log func(model, line string)
	// Folder is where the worker's files are put; "" is a folder of the user's cache.
	Folder string
}

// Limits that are not settings.
const (
	maxProcesses   = 64 // that one model may have, with those that it starts
	watchEvery     = 100 * time.Millisecond
	startTimeout   = 30 * time.Second       // until an interpreter answers
	importTimeout  = 2 * time.Minute        // for the frameworks of a spare process
	endTimeout     = 5 * time.Second        // for a model's unload
	patience       = 800 * time.Millisecond // for a process that starts; the data plane waits for 1 s at least
	firstRoom      = 64 << 10               // bytes for outputs
	mostRoom       = 1 << 40                // bytes for outputs, far above what a machine holds
	keptMemory     = 64 << 20               // bytes of shared memory that stay in use after a batch
	maxMessage     = 1 << 20                // bytes of an answer, without tensors
	maxLine        = 16 << 10               // bytes of a line of output
	linesPerSecond = 200
	dataReserve    = 1 << 30 // bytes of memory that is mapped and never touched
	maxRestarts    = 5       // in a row, until an instance is left to the engine
)
