// Package load sends loads to a running server with package internal/measure/loadgen. The apps are those of a
// configuration, or one that is known only by its name. Inputs are labelled samples or random tensors of the shapes
// that the server describes, as long as the workload says.
package load

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// Loader sends loads to one server.
type Loader struct {
	Client loadgen.Target
	// Apps are those that can be called, by the AppID of workloads.
	Apps []loadgen.App
	// Options of every load; Send fills in those that the workload defines.
	Options loadgen.Options
	masks   []string // inputs that say what is padded, beside repository.MaskName
	// Choose may change the sample of a query; nil keeps the workload's.
	Choose func(*workload.Arrival)
}

// For returns a loader of a configuration's apps. The caller must set the client in Options and add samples.
func For(o *host.Opened) *Loader {
	l := &Loader{}
	for a, i := range o.AppInfo() {
		accuracy := make(map[string]float64)
		for v, b := range o.Tables().Variants {
			if b.App == serving.AppID(a) {
				x := &o.Spec().Variants[v]
				accuracy[x.Name] = x.Accuracy
				if b.Mask != "" {
					l.masks = append(l.masks, b.Mask)
				}
			}
		}
		l.Apps = append(l.Apps, loadgen.App{Name: i.Name, SLO: i.SLO, BestAccuracy: i.BestAccuracy, Accuracy: accuracy})
	}
	l.Options.Version = func(v serving.VariantID) string { return o.Spec().Variants[v].Name }
	return l
}

// describeTimeout bounds the request for the inputs of an app; randomInputs is the number of random samples that are
// made.
const (
	describeTimeout = 10 * time.Second
	randomInputs    = 64
)

// Samples gives every app labelled samples from a folder or, without one, random inputs of the shapes that the server
// describes. server is its name in messages. An error is of kind fault.Config for the folder, fault.NoServer when the
// server does not answer.
func (l *Loader) Samples(ctx context.Context, server, folder string, seed uint64) (err error) {
	masks := append([]string{repository.MaskName}, l.masks...)
	for a := range l.Apps {
		app := &l.Apps[a]
		if folder != "" {
			if app.Samples, err = loadgen.LoadSamples(folder); err != nil {
				return fault.Wrap(fault.Config, err)
			}
			continue
		}
		asked, done := context.WithTimeout(ctx, describeTimeout)
		specs, err := l.Client.Inputs(asked, app.Name)
		done()
		if err != nil {
			return fault.Errorf(fault.NoServer, "%s does not say what %q takes: %w", server, app.Name, err)
		}
		if app.Samples, err = loadgen.Synthetic(specs, randomInputs, seed, masks...); err != nil {
			return fmt.Errorf("%q: %w", app.Name, err)
		}
	}
	return nil
}

// Names returns the names of the apps.
func (l *Loader) Names() []string {
	out := make([]string, len(l.Apps))
	for a := range out {
		out[a] = l.Apps[a].Name
	}
	return out
}

// Counts returns the numbers of samples, by the name of the app.
func (l *Loader) Counts() map[string]int32 {
	out := make(map[string]int32)
	for _, a := range l.Apps {
		out[a.Name] = int32(a.Samples.Count)
	}
	return out
}

func (l *Loader) appID(name string) (serving.AppID, error) {
	for a := range l.Apps {
		if l.Apps[a].Name == name {
			return serving.AppID(a), nil
		}
	}
	return serving.None, fmt.Errorf("app %q is unknown", name)
}

// Send sends one load and returns its results; when ctx ends, those so far. progress may be nil. An error is of kind
// fault.Config when the workload does not fit the apps.
func (l *Loader) Send(ctx context.Context, spec *workload.Spec, progress func(loadgen.Progress)) (*loadgen.Result,
	error) {
	src, err := spec.Source(l.appID)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	if l.Choose != nil {
		src = chosen{src, l.Choose}
	}
	o := l.Options
	o.Duration, o.Progress = spec.Duration(), progress
	if o.Clients, err = spec.Clients(l.appID); err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	return loadgen.Run(ctx, l.Client, l.Apps, src, o)
}

// chosen is a workload whose samples are chosen by a function.
type chosen struct {
	workload.Source
	choose func(*workload.Arrival)
}

// Next implements workload.Source.
func (c chosen) Next() (workload.Arrival, bool) {
	a, ok := c.Source.Next()
	if ok {
		c.choose(&a)
	}
	return a, ok
}
