package host

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/sluice-serving/sluice/api/server"
	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/host/fault"
	"github.com/sluice-serving/sluice/serving"
)

// brokenApp is an app of the configuration that cannot be served, since a model of it does not load or run.
type brokenApp struct {
	app     serving.App
	version string // that clients know
	reason  error
}

// withoutBroken loads every model that runs in this process once. It returns the configuration without the apps of
// those that fail, which are remembered with the reason, or the configuration itself where none fails.
func (o *Opened) withoutBroken(ctx context.Context) (*Opened, error) {
	run, err := o.backends(nil)
	if err != nil {
		return nil, err
	}
	if run.local == nil {
		return o, nil
	}
	spec := o.Spec()
	out := make(map[string]bool)
	var broken []brokenApp
	for a := range spec.Apps {
		app := &spec.Apps[a]
		for _, st := range app.Stages {
			for _, v := range spec.Stages[st].Variants {
				if out[app.Name] || o.tables.Variants[v].Path == "" {
					continue
				}
				err := run.tryModel(ctx, v)
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				if err != nil {
					o.options.Notice(fmt.Sprintf("app %q is not served: %v", app.Name, err))
					out[app.Name] = true
					broken = append(broken, brokenApp{*app, spec.ClientVersion(v), err})
				}
			}
		}
	}
	switch {
	case len(broken) == 0:
		return o, nil
	case len(broken) == len(spec.Apps):
		return nil, fault.Errorf(fault.Config, "no app of %s can be served: %w", o.Name(), broken[0].reason)
	}
	rest := *o
	rest.file = o.file.Without(out)
	if rest.tables, err = rest.file.Resolve(); err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	rest.broken = broken
	return &rest, nil
}

// tryModel loads a variant's model and runs it once, with one item.
func (b *backends) tryModel(ctx context.Context, v serving.VariantID) error {
	r, err := b.local.Launch(ctx, dataplane.InstanceSpec{
		ID: 1, Variants: []serving.VariantID{v}, BatchLimit: 1, Slots: 1, Cores: 1,
	})
	if err != nil {
		return err
	}
	return r.Close()
}

// brokenModels are the apps that are not served, as clients see them: as a version of a model that is served, or as a
// model of its own.
func (o *Opened) brokenModels(served []*server.Model) []*server.Model {
	for _, x := range o.broken {
		m := &server.Model{
			Name: x.app.ClientName(), App: serving.None, Platform: server.OfONNX, Failed: x.reason.Error(),
			FailedKind: failedRuntime,
			Versions:   []server.Version{{Variant: serving.None, Name: x.app.Name, Version: x.version}},
		}
		if len(x.app.Stages) > 1 {
			m.Platform, m.Versions[0].Version = server.Ensemble, strconv.Itoa(1)
		}
		joined := false
		for _, main := range served {
			if main.Name == m.Name {
				all := slices.Concat(main.All(), []*server.Model{m})
				for _, y := range all {
					y.Family = all
				}
				joined = true
			}
		}
		if !joined {
			served = append(served, m)
		}
	}
	return served
}
