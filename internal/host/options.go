package host

import (
	"github.com/sluice-serving/sluice/internal/api/listen"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/provider"
)

// Options are callbacks for a user interface. One call into this package makes one callback at a time. Concurrent calls
// into this package may make them concurrently.
type Options struct {
	// Notice is called with a sentence for the user that is no error, such as that measurements begin. It has no line
	// feed at the end. Nil discards it.
	Notice func(sentence string)
	// Progress is called with the share of a long operation that is done, in [0, 1], and the name of its present step.
	// It may be called thousands of times and should return at once. Nil discards it.
	Progress func(share float64, doing string)
	// Quick has models measured for a second or so, less exactly.
	Quick bool
	// ProfileFirst has measuring.EnsureProfile measure all models before it returns. Else it looks at them, and a
	// server measures them while it is idle.
	ProfileFirst bool
	// Measured is a folder that keeps measurements of models beyond a run, by their content, for any configuration on
	// such a machine; "" keeps none.
	Measured string
	// Models replaces settings of the file's section models that it sets: control, load and poll.
	Models config.Models
	// Imported tells that the file was made of its model repository: in a running server, apps are made of it anew.
	Imported bool
	// Machines supplies the machines of workers of kind `supplied`. Nil takes those that a worker's command starts.
	// The caller closes it, after the server.
	Machines provider.Supply
	// Where says where a worker that is a `sluice node` gets a model that its repository lacks, and the SHA-256 that
	// the file or archive must have. "" leaves that to what the worker was started with. Nil does so for all models.
	Where func(model string) (uri, digest string)
	// Net is what the server listens on and reaches workers over.
	Net listen.Net
}

// withDefaults returns the options with functions that do nothing in place of nil.
func (o Options) withDefaults() Options {
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.Progress == nil {
		o.Progress = func(float64, string) {}
	}
	if o.Where == nil {
		o.Where = func(string) (uri, digest string) { return "", "" }
	}
	return o
}
