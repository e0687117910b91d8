package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// catalog is the model repository of a running server. Models that are added, changed or removed there become apps of
// the server, and new versions take the place of old ones once they are ready. One change is made at a time.
type catalog struct {
	base    *host.Profiled // what the server began with
	root    string         // the repository's folder
	run     *machines.Backends
	service *service
	manager *functions.Manager // has the spec
	refiner *refiner
	log     *slog.Logger
	temp    string // folder of models that clients have sent; "" until there is one
	latest  int    // number of folders made in it

	reloading sync.Mutex // held while the file is read anew

	mu      sync.Mutex
	entries map[string]*catalogEntry // by the name that clients call
	file    *config.File             // the latest, with the apps that are not started
}

// catalogEntry is a model that is served, or that could not be.
type catalogEntry struct {
	parts []string // models of the repository that it is made of
	print string   // of their files when they were read; "" for a model that a client has sent
	// written is what the file said of its apps, nil where it has none, and judged what that and profiles said of their
	// variants.
	written []config.App
	judged  string
	apps    []serving.AppID // open ones
	model   *server.Model
	temp    string              // folder with files that a client has sent; "" for none
	at      *serving.Placed     // of its definition; nil for what was there at the start
	later   []serving.VariantID // variants that are to be measured better while the server is idle
	// Of one that is unloaded: what was measured of its variants, by their numbers in its definition, and whether more
	// was to be measured.
	measured  serving.Measurements
	unrefined bool
}

// newCatalog returns the repository of a server whose models run in this process, or nil for another server.
func newCatalog(p *host.Profiled, run *machines.Backends, s *service, m *functions.Manager, r *refiner,
	log *slog.Logger) *catalog {
	if !p.Fleet().HasCatalog() || run.Local == nil {
		return nil
	}
	c := &catalog{base: p, run: run, service: s, manager: m, refiner: r, log: log,
		root: p.File().Path(p.File().Models.Repository), entries: make(map[string]*catalogEntry), file: p.Whole()}
	for _, m := range s.Models() {
		e := &catalogEntry{model: m, parts: partsOf(p.Whole(), m.Name), written: c.written(m.Name)}
		for _, x := range m.All() {
			if x.Failed == "" {
				e.apps = append(e.apps, x.App)
			}
		}
		if repo, err := c.open(); err == nil {
			e.print, _ = printOf(repo, e.parts)
			_ = repo.Close()
		}
		e.judged = judgedOf(p.Spec(), e.apps)
		c.entries[m.Name] = e
	}
	c.rememberLeftOut()
	return c
}

// rememberLeftOut notes why models of the repository are not served from the start, so that clients are told. Where
// clients say which are loaded, or a file does, the others are none that failed.
func (c *catalog) rememberLeftOut() {
	if !c.base.Options().Imported || c.base.File().Models.Control == config.ControlExplicit {
		return
	}
	repo, err := c.open()
	if err != nil {
		return
	}
	defer func() { _ = repo.Close() }()
	for _, name := range c.unused() {
		d, reason := c.define(name, server.Loading{}, nil)
		if reason == nil {
			d.close()
			continue
		}
		if print, err := printOf(repo, []string{name}); err == nil {
			c.remember(name, &definition{parts: []string{name}, print: print}, reason)
		}
	}
}

// current is the file as it was read last.
func (c *catalog) current() *config.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.file
}

// written is what the file says of the apps of a model; nil where it has none.
func (c *catalog) written(name string) []config.App {
	if c.base.Options().Imported {
		return nil
	}
	return c.current().Only(name).Apps
}

func (c *catalog) open() (*repository.Repository, error) {
	return repository.Open(c.root)
}

// partsOf lists the models of the repository that a model of a file is made of: the folder of an ensemble among them.
func partsOf(f *config.File, name string) []string {
	parts := []string{name}
	for i := range f.Only(name).Apps {
		a := &f.Only(name).Apps[i]
		for _, v := range a.Variants {
			parts = append(parts, v.Model)
		}
	}
	parts = append(parts, f.Members(name)...)
	slices.Sort(parts)
	return slices.Compact(parts)
}

// printOf is the fingerprint of models together. Parts that are no folders, such as an app's name, are left out; the
// error wraps repository.ErrNotFound when all are.
func printOf(repo *repository.Repository, parts []string) (string, error) {
	var all []string
	for _, name := range parts {
		one, err := repo.Fingerprint(name)
		switch {
		case err == nil:
			all = append(all, name+" "+one)
		case !errors.Is(err, repository.ErrNotFound):
			return "", err
		}
	}
	if len(all) == 0 {
		return "", repository.ErrNotFound
	}
	return strings.Join(all, "\n"), nil
}

// unused lists the models of the repository that are not served.
func (c *catalog) unused() []string {
	repo, err := c.open()
	if err != nil {
		return nil
	}
	defer func() { _ = repo.Close() }()
	names, err := repo.Names()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return c.entry(name) != nil || c.belongs(name) || c.service.chains.has(name)
	})
}

// belongs reports whether a folder of the repository is a variant of an app that the file describes: such a model is
// not called by its own name.
func (c *catalog) belongs(name string) bool {
	if c.base.Options().Imported {
		return false
	}
	f := c.current()
	for i := range f.Apps {
		if a := &f.Apps[i]; a.Name != name && slices.Contains(partsOf(f, a.Name), name) {
			return true
		}
	}
	return false
}

// load reads a model of the repository anew if it has changed, or is served otherwise, and returns once it is ready.
// What was served before stays until then, and stays altogether when the new one cannot be served.
func (c *catalog) load(ctx context.Context, name string, how server.Loading) error {
	return c.manager.Extend(ctx, func(x *functions.Extension) error { return c.loadOne(ctx, x, name, how) })
}

func (c *catalog) loadOne(ctx context.Context, x *functions.Extension, name string, how server.Loading) error {
	return c.loadAs(ctx, x, name, how, nil)
}

// loadAs loads a model. The models of whole are known not to batch.
func (c *catalog) loadAs(ctx context.Context, x *functions.Extension, name string, how server.Loading,
	whole map[string]bool) error {
	d, err := c.define(name, how, whole)
	if err != nil {
		return polled(err)
	}
	defer d.close()
	c.mu.Lock()
	was := c.entries[name]
	c.mu.Unlock()
	if was != nil && len(was.apps) > 0 && was.print == d.print && d.print != "" &&
		was.judged == d.judged && reflect.DeepEqual(was.written, d.written) {
		return c.service.reload(ctx, was.model)
	}
	if was != nil && c.limitsAlone(was, d) {
		return c.limit(ctx, x, name, was, d)
	}
	var e *catalogEntry
	if err = c.hasRoom(was); err == nil {
		e, err = c.add(ctx, x, d, was)
	}
	if err != nil {
		_ = os.RemoveAll(d.temp)
		if single := (*errUnbatched)(nil); errors.As(err, &single) && whole == nil {
			return c.loadAs(ctx, x, name, how, single.models)
		}
		if was == nil {
			c.remember(name, d, err)
		} else if len(was.apps) == 0 {
			c.remember(name, d, err)
			c.service.show(name, c.entry(name).model)
		}
		return err
	}
	c.mu.Lock()
	c.entries[name] = e
	c.mu.Unlock()
	c.refineLater(x.Spec, e, d)
	c.service.show(name, e.model)
	c.log.Info("model loaded", "model", name, "versions", len(e.apps))
	return c.retire(x, was)
}

// hasRoom returns an error when a model would be one more than the configuration allows. was is what it takes the place
// of, or nil.
func (c *catalog) hasRoom(was *catalogEntry) error {
	if was != nil && len(was.apps) > 0 {
		return nil
	}
	n := 1
	c.mu.Lock()
	for _, e := range c.entries {
		if len(e.apps) > 0 {
			n++
		}
	}
	c.mu.Unlock()
	if err := c.base.File().Models.CheckCount(n, "with it"); err != nil {
		return oip.Errorf(oip.Unavailable, "", "%v", err)
	}
	return nil
}

// polled is the error for a model that cannot be read, in words that clients of Triton look for.
func polled(err error) error {
	code := oip.Internal
	if known := (*oip.Error)(nil); errors.As(err, &known) {
		code = known.Code
	}
	return oip.Errorf(code, "", "%s%s", notPolled, err.Error())
}

const notPolled = "failed to poll from model repository: "

func (c *catalog) entry(name string) *catalogEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[name]
}

// remember notes that a model cannot be served as it is, so that it is not tried again before it changes.
func (c *catalog) remember(name string, d *definition, reason error) {
	if d.sent {
		return
	}
	e := &catalogEntry{parts: d.parts, print: d.print, model: &server.Model{
		Name: name, App: serving.None, Platform: server.OfONNX, Failed: reason.Error(), FailedKind: failedKind(reason),
		Versions: []server.Version{{Variant: serving.None, Name: name, Version: "1"}},
	}}
	c.mu.Lock()
	c.entries[name] = e
	c.mu.Unlock()
	c.service.show(name, e.model)
}

// retire closes what an entry served.
func (c *catalog) retire(x *functions.Extension, e *catalogEntry) error {
	if e == nil {
		return nil
	}
	err := c.closeApps(x, e.apps)
	if e.temp != "" {
		// Instances that are still draining have read their file.
		_ = os.RemoveAll(e.temp)
	}
	return err
}

// closeApps has apps take no more queries. Accepted ones are answered.
func (c *catalog) closeApps(x *functions.Extension, apps []serving.AppID) error {
	if len(apps) == 0 {
		return nil
	}
	spec := x.Spec
	for _, a := range apps {
		spec = spec.WithClosed(a)
	}
	return x.Put(spec, x.Measured)
}

// remove ends a model that is no longer in the repository.
func (c *catalog) remove(ctx context.Context, name string) error {
	return c.manager.Extend(ctx, func(x *functions.Extension) error {
		c.mu.Lock()
		e := c.entries[name]
		delete(c.entries, name)
		c.mu.Unlock()
		c.service.show(name, nil)
		c.log.Info("model removed", "model", name)
		return c.retire(x, e)
	})
}

// unload ends what a model serves. It stays known, and is loaded again when a client asks.
func (c *catalog) unload(ctx context.Context, name string) error {
	return c.manager.Extend(ctx, func(x *functions.Extension) error {
		e := c.entry(name)
		if e == nil || len(e.apps) == 0 {
			return nil
		}
		left := *e
		left.apps, left.temp, left.model = nil, "", unloaded(e.model)
		if e.at != nil {
			left.unrefined = c.refiner.drop(x.Spec, e.at.Variants)
			left.measured = x.Measured.Of(func(v serving.VariantID, _ serving.DeviceTypeID) (serving.VariantID, bool) {
				k := slices.Index(e.at.Variants, v)
				return serving.VariantID(k), k >= 0
			})
		}
		c.mu.Lock()
		c.entries[name] = &left
		c.mu.Unlock()
		c.service.show(name, left.model)
		c.log.Info("model unloaded", "model", name)
		return c.retire(x, e)
	})
}

// unloaded is a model without what serves it.
func unloaded(m *server.Model) *server.Model {
	all := make([]*server.Model, len(m.All()))
	for k, x := range m.All() {
		one := *x
		one.App, one.Generation, one.Unloaded, one.Former = serving.None, 0, true, nil
		one.Versions, one.Earlier = unplaced(x.Versions), unplaced(x.Earlier)
		if all[k] = &one; m.Family != nil {
			one.Family = all
		}
	}
	return all[0]
}

func unplaced(list []server.Version) []server.Version {
	out := slices.Clone(list)
	for k := range out {
		out[k].Variant, out[k].Generation = serving.None, 0
	}
	return out
}

// members lists the models that a served model is made of, which are models of their own, too.
func (c *catalog) members(name string) (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[name]; e != nil {
		for _, x := range e.parts {
			if x != name {
				out = append(out, x)
			}
		}
	}
	return out
}

// add brings the apps of a definition into the running server and waits until they are ready. was is what was served
// under its name before, or nil.
func (c *catalog) add(ctx context.Context, x *functions.Extension, d *definition, was *catalogEntry) (*catalogEntry,
	error) {
	free := x.Free()
	spec, at := x.Spec.WithAppsOf(d.tables.Spec, &free)
	before := x.Spec
	for v, id := range at.Variants {
		b := &d.tables.Variants[v]
		if c.run.Unbind(id); b.Function != nil {
			c.run.Functions.Bind(id, b.Function)
		} else {
			c.run.Local.Bind(id, machines.ONNXModel(b))
		}
	}
	own, later, err := c.measuredOf(ctx, x, spec, at, d, was)
	if err != nil {
		return nil, err
	}
	measured := x.Measured.Replaced(func(v serving.VariantID, _ serving.DeviceTypeID) bool {
		return slices.Contains(at.Variants, v)
	}, own)
	if err := c.proposeObjectives(spec, at, d, measured); err != nil {
		return nil, err
	}
	if err := spec.Validate(); err != nil {
		return nil, oip.Errorf(oip.Invalid, "", "%v", err)
	}
	g, err := x.Growth(spec, measured)
	if err == nil {
		together := slices.Clone(at.Stages)
		if was != nil {
			for _, a := range was.apps {
				together = append(together, x.Spec.Apps[a].Stages...)
			}
		}
		err = c.feasible(ctx, x, g, together)
	}
	if err != nil {
		return nil, err
	}
	wiring := d.backends().Wiring(ctx, c.log)
	models, err := models(d.opened, d.backends(), wiring, c.log)
	if err != nil {
		return nil, err
	}
	e := &catalogEntry{
		parts: d.parts, print: d.print, written: d.written, judged: d.judged, temp: d.temp, apps: at.Apps, at: at,
		later: later,
	}
	if len(models) != 1 {
		return nil, oip.Errorf(oip.Internal, "", "%d models came of one", len(models))
	}
	e.model = models[0]
	for _, m := range e.model.All() {
		shift(m, spec, at)
	}
	if err := x.Grow(g, wiredAt(spec, wiring, at)); err != nil {
		return nil, err
	}
	for v := range d.tables.Variants {
		if b := &d.tables.Variants[v]; b.Described != nil && b.Described.Sequence != nil {
			c.service.sequences.add(at.Apps[b.App], sequencesOf(b.Described))
		}
	}
	if err := c.service.awaitReady(ctx, e.model); err != nil {
		// The engine knows the apps already: they are closed, and what was served before stays.
		return nil, errors.Join(err, c.closeApps(x, e.apps), sameApps(before, x.Spec))
	}
	return e, nil
}

// feasible returns why no plan can be made after a growth, or none that runs all of some stages; nil when one can. A
// system that starts instances with the first query need not run any.
func (c *catalog) feasible(ctx context.Context, x *functions.Extension, g *engine.Growth,
	stages []serving.StageID) error {
	made, err := x.Plan(ctx, g)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return oip.Errorf(oip.Unavailable, "", "no plan can be made with it: %v", err)
	case c.service.wakes():
		return nil
	}
	for _, s := range stages {
		if !slices.ContainsFunc(made.Instances, func(i plan.Instance) bool { return i.Stage == s }) {
			return oip.Errorf(oip.Unavailable, "", "the machines have no room for stage %q beside what runs, which "+
				"includes what it is to take the place of: unload something first", g.Spec.Stages[s].Name)
		}
	}
	return nil
}

// sameApps reports an app of the spec before that is no longer open.
func sameApps(before, now *serving.Spec) error {
	for a := range before.Apps {
		if x := &now.Apps[a]; x.Generation == before.Apps[a].Generation && x.Closed && !before.Apps[a].Closed {
			return fmt.Errorf("app %q was closed, too", before.Apps[a].Name)
		}
	}
	return nil
}

// shift translates the identifiers of a model.
func shift(m *server.Model, spec *serving.Spec, at *serving.Placed) {
	m.App = at.Apps[m.App]
	m.Generation = spec.Apps[m.App].Generation
	for _, list := range [][]server.Version{m.Versions, m.Earlier} {
		for k := range list {
			v := at.Variants[list[k].Variant]
			list[k].Variant, list[k].Generation = v, spec.Variants[v].Generation
		}
	}
}

// begin loads the models that the configuration has from the start and no app of its names. An imported repository has
// become apps already.
func (c *catalog) begin(ctx context.Context) {
	m := &c.base.File().Models
	if c.base.Options().Imported || !m.Changes() {
		return
	}
	names := m.Load
	if m.Control == config.ControlPoll || slices.Contains(names, config.AllModels) {
		names = c.unused()
	}
	for _, name := range names {
		if c.entry(name) == nil {
			c.complain(ctx, name, c.load(ctx, name, server.Loading{}))
		}
	}
}

// watch looks for changes in the repository until ctx ends.
func (c *catalog) watch(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.look(ctx)
		}
	}
}

// look loads what is new or has changed in the repository, and ends what is gone.
func (c *catalog) look(ctx context.Context) {
	repo, err := c.open()
	if err != nil {
		c.log.Warn("the model repository cannot be read: models stay as they are", "error", err)
		return
	}
	defer func() { _ = repo.Close() }()
	c.mu.Lock()
	was := maps.Clone(c.entries)
	c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(was)) {
		print, err := printOf(repo, was[name].parts)
		_, own := repo.Fingerprint(name)
		gone := errors.Is(err, repository.ErrNotFound) ||
			c.base.Options().Imported && errors.Is(own, repository.ErrNotFound)
		switch {
		case gone:
			err = c.remove(ctx, name)
		case err == nil && print != was[name].print:
			err = c.load(ctx, name, server.Loading{})
		}
		c.complain(ctx, name, err)
	}
	for _, name := range c.unused() {
		c.complain(ctx, name, c.load(ctx, name, server.Loading{}))
	}
}

func (c *catalog) complain(ctx context.Context, name string, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, repository.ErrNotFound) {
		c.log.Warn("a model is not loaded", "model", name, "error", err)
	}
}

// close removes the files that clients have sent.
func (c *catalog) close() error {
	if c.temp == "" {
		return nil
	}
	return os.RemoveAll(c.temp)
}
