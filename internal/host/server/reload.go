package server

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/functions"
)

// reload reads the configuration file anew and has the apps that it lists: new ones are added, changed ones take the
// place of what they were once they are ready, and those that are gone end. An app that cannot be served stays as it
// was. It changes nothing where the file is wrong, or differs in more than its apps and profiles.
func (c *catalog) reload(ctx context.Context) ([]functions.AppChange, error) {
	if c.base.Options().Imported {
		return nil, oip.Errorf(oip.Unsupported, "", "the server was started without a configuration file")
	}
	if !c.reloading.TryLock() {
		return nil, oip.Errorf(oip.Unavailable, "", "the configuration is being read anew already")
	}
	defer c.reloading.Unlock()
	next, err := config.Load(c.base.Name())
	if err == nil {
		err = next.SetModels(c.base.Options().Models)
	}
	if err != nil {
		return nil, oip.Errorf(oip.Invalid, "", "%v", err)
	}
	if differs := next.Restarts(c.base.Whole()); len(differs) > 0 {
		return nil, oip.Errorf(oip.Invalid, "", "%s: %s differs from what the server was started with: that takes a "+
			"restart. Apps and profiles alone are read while it runs", c.base.Name(), strings.Join(differs, ", "))
	}
	was := c.current()
	c.mu.Lock()
	c.file = next
	c.mu.Unlock()
	var out []functions.AppChange
	done := func(name, change string, err error) {
		x := functions.AppChange{App: name, Change: change}
		if err != nil {
			x.Error = strings.TrimPrefix(err.Error(), notPolled)
			c.log.Warn("an app of the configuration stays as it was", "app", name, "error", err)
		}
		out = append(out, x)
	}
	for _, name := range was.ModelNames() {
		if e := c.entry(name); e != nil && len(next.Only(name).Apps) == 0 {
			done(name, functions.Removed, c.remove(ctx, name))
		}
	}
	for _, name := range next.ModelNames() {
		switch e := c.entry(name); {
		case c.service.isDeployed(name):
			done(name, functions.Added, oip.Errorf(oip.Invalid, "", "a function has this name: delete it first"))
		case e == nil && c.base.File().Models.Control == config.ControlExplicit:
			// clients say which are loaded
		case e != nil && e.model != nil && e.model.Unloaded:
			// a client has unloaded it: when it loads it again, that is as the file says by then
		case e == nil || len(e.apps) == 0:
			done(name, functions.Added, c.load(ctx, name, server.Loading{}))
		case !reflect.DeepEqual(e.written, c.written(name)) || len(next.Profiles) > 0 && c.judgedAnew(name, e):
			done(name, functions.Changed, c.load(ctx, name, server.Loading{}))
		}
	}
	return out, ctx.Err()
}

// limitsAlone reports whether apps that are served differ from what they are to be in nothing that their instances know
// of: see serving.Spec.WithLimits.
func (c *catalog) limitsAlone(was *catalogEntry, d *definition) bool {
	if len(was.apps) == 0 || was.print == "" || was.print != d.print || was.judged != d.judged ||
		len(was.written) == 0 || len(was.written) != len(d.written) {
		return false
	}
	for k := range was.written {
		a, b := was.written[k], d.written[k]
		b.SLO, b.ColdWait, b.MinInstances, b.MaxInstances, b.Demand = a.SLO, a.ColdWait, a.MinInstances, a.MaxInstances,
			a.Demand
		if !reflect.DeepEqual(a, b) {
			return false
		}
	}
	return true
}

// limit puts such differences into force. Nothing is loaded for it.
func (c *catalog) limit(ctx context.Context, x *functions.Extension, name string, was *catalogEntry,
	d *definition) error {
	spec := x.Spec
	for _, a := range was.apps {
		for k := range d.tables.Spec.Apps {
			if of := &d.tables.Spec.Apps[k]; of.Name == spec.Apps[a].Name {
				spec = spec.WithLimits(a, of)
			}
		}
	}
	g, err := x.Growth(spec, x.Measured)
	if err == nil {
		err = c.feasible(ctx, x, g, nil)
	}
	if err == nil {
		err = x.Grow(g, nil)
	}
	if err == nil {
		next := *was
		next.written = d.written
		c.mu.Lock()
		c.entries[name] = &next
		c.mu.Unlock()
	}
	return err
}

// judgedAnew reports whether profiles say something else of the accuracy of an entry's variants than they did.
func (c *catalog) judgedAnew(name string, e *catalogEntry) bool {
	d, err := c.define(name, server.Loading{}, nil)
	if err != nil {
		return true // loading it says what is wrong
	}
	d.close()
	return d.judged != e.judged
}

// reloading answers requests to read the configuration anew.
func (s *Server) reloading(w http.ResponseWriter, r *http.Request) {
	var list []functions.AppChange
	err := error(oip.Errorf(oip.Unsupported, "", "this server reads its configuration at its start alone: its models "+
		"do not run in its process, from a repository"))
	if c := s.service.catalog; c != nil {
		list, err = c.reload(r.Context())
	}
	functions.Reply(w, functions.Reloaded{Apps: list}, err)
}
