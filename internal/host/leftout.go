package host

import (
	"errors"
	"fmt"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/serving"
)

// LeftOutApp is an app of the configuration that cannot be served, since a model of it does not load or run.
type LeftOutApp struct {
	App     serving.App
	Version string // that clients know
	model   string // of the repository
	Reason  error
}

// LeftOut has the models that cannot be loaded, with the reason.
func (o *Opened) LeftOut() map[string]string {
	out := make(map[string]string)
	for _, x := range o.broken {
		out[x.model] = x.Reason.Error()
	}
	return out
}

// withoutBroken returns the configuration without the apps of models that run here and could not be loaded, which are
// remembered with the reason, or the configuration itself where all could. f says what happened to them.
func (o *Opened) withoutBroken(f *profiler.File) (*Opened, error) {
	spec := o.Spec()
	out := make(map[string]bool)
	var broken []LeftOutApp
	for a := range spec.Apps {
		app := &spec.Apps[a]
		for _, st := range app.Stages {
			for _, v := range spec.Stages[st].Variants {
				if err := o.loadFailure(f, v); err != nil && !out[app.Name] {
					o.say(fmt.Sprintf("app %q is not served: %v", app.Name, err))
					out[app.Name] = true
					broken = append(broken, LeftOutApp{*app, spec.ClientVersion(v), o.tables.Variants[v].Model, err})
				}
			}
		}
	}
	switch {
	case len(broken) == 0:
		return o, nil
	case len(broken) == len(spec.Apps):
		return nil, fault.Errorf(fault.Config, "no app of %s can be served: %w", o.Name(), broken[0].Reason)
	}
	rest := *o
	rest.file = o.file.Without(out)
	var err error
	if rest.tables, err = rest.file.Resolve(); err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	rest.broken = broken
	return &rest, nil
}

// loadFailure says why a variant cannot be loaded on a worker that runs it here; nil where it can. Workers elsewhere
// may be absent for now.
func (o *Opened) loadFailure(f *profiler.File, v serving.VariantID) error {
	for w := range o.tables.Backends {
		d := &o.Spec().DeviceTypes[o.Spec().Workers[w].DeviceType]
		x := f.Failure(o.Spec().Variants[v].Name, d.Name)
		if x != nil && x.Batch == 0 && o.Fleet().RunsHere(serving.WorkerID(w)) {
			return errors.New(x.Reason)
		}
	}
	return nil
}

// Broken are the apps that are left out.
func (o *Opened) Broken() []LeftOutApp { return o.broken }

// WithoutLeftOut returns a copy that tells of no app that is left out.
func (o *Opened) WithoutLeftOut() *Opened {
	out := *o
	out.broken = nil
	return &out
}
