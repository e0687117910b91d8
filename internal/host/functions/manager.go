package functions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Predictor gets the latencies of a model before it is served.
type Predictor interface {
	// Predict returns latencies of the subject's variant, under its name, on the device types of its spec on which it
	// may run.
	Predict(ctx context.Context, s *Subject) (*profiler.File, error)
}

// Subject is a model whose latency is predicted or measured.
type Subject struct {
	Spec    *serving.Spec     // in which Variant is
	Variant serving.VariantID // of the function's newest version
	File
	*repository.Described
}

// File is the file of a model.
type File struct {
	Path    string
	Batched bool   // the first dimension counts items
	Python  bool   // it is a file of Python, else one of ONNX
	Class   string // in a file of Python; "" is its only one
	// MaxBatch is the largest batch in items.
	MaxBatch int
}

// fileOf returns the file of a function with a largest batch. d is nil where it is not known yet.
func (c *Config) fileOf(x *store.Function, d *repository.Described, most int) File {
	f := File{Path: c.Store.ModelPath(x.Model.SHA256), Python: x.Python, Class: x.Class, MaxBatch: most}
	if d != nil {
		f.Batched = d.Batched
	}
	return f
}

// Host is the running server that functions are deployed to.
type Host interface {
	// Bind sets the model file of a variant before its first launch. It may be called again for a variant that was
	// never run.
	Bind(v serving.VariantID, f *File)
	// Describe returns what a model in Python says of itself, and the largest batch that it takes. It runs its code.
	Describe(ctx context.Context, f *File) (*repository.Described, int, error)
	// Plan returns a plan as it would be made after a growth, or the reason why none could be.
	Plan(ctx context.Context, g *engine.Growth) (*plan.Plan, error)
	// Grow puts a grown spec into force. wiring is that of its new apps' stages; nil where each has one. open lists all
	// functions that are open in it.
	Grow(g *engine.Growth, wiring []pipeline.Wiring, open []Live) error
	// Free lists what the next growth may take the places of.
	Free() serving.Free
	// State is one of Planning, Starting, Ready, Idle and Failing, of a function's newest version. ready counts the
	// instances that answer.
	State(l *Live) (state string, ready int)
}

// Live is a function that is deployed, with its app and the variant of its newest version.
type Live struct {
	store.Function
	*repository.Described
	App     serving.AppID
	Variant serving.VariantID
}

// Config are the parts of a Manager.
type Config struct {
	Store     *store.Functions // nil for a server to which nothing is deployed
	Predictor Predictor        // nil if latency is learned while serving
	// Quick is a faster and less exact Predictor, for deployments that ask for it; nil for none.
	Quick     Predictor
	Statistic profile.Statistic
	// Spec and Measurements are those of the configured apps, which are not deployed.
	Spec         *serving.Spec
	Measurements serving.Measurements
	App          serving.App // settings that all functions share: late policy, slack, queue limit
	Events       int         // number kept of every function; 0 means 256
	// Trouble is told of deployments that have panicked; nil tells nobody.
	Trouble func(error)
}

// Manager manages the functions of a server. It is safe for concurrent use.
type Manager struct {
	c    Config
	host Host
	log  *events

	changing chan struct{} // of capacity 1: holds a token while the spec is being changed
	underway *underway
	chains   Chains // nil where there are none

	mu              sync.Mutex
	spec            *serving.Spec
	measured        serving.Measurements
	live            map[string]*Live
	unrestored      map[string]error // functions of the store that could not be restored
	keptPredictions map[string]int   // by name: the version that keeps its prediction, since measuring has failed
}

// Restore returns a manager with the functions that the store has, and binds their files. Nothing runs yet: the engine
// must begin with Current. A function that cannot be restored, because its file is damaged or its name is that of an
// app, is left out and listed by Unrestored.
func Restore(ctx context.Context, c Config, host Host) (*Manager, error) {
	if c.Events <= 0 {
		c.Events = 256
	}
	m := &Manager{
		c: c, host: host, changing: make(chan struct{}, 1), underway: newUnderway(), spec: c.Spec,
		measured: c.Measurements,
		live:     make(map[string]*Live), unrestored: make(map[string]error), keptPredictions: make(map[string]int),
	}
	var list []store.Function
	if c.Store != nil {
		var err error
		if list, err = c.Store.List(); err != nil {
			return nil, err
		}
	}
	for _, x := range list {
		if m.configuredApp(x.Name) != serving.None {
			m.unrestored[x.Name] = fmt.Errorf(
				"function %q: it has the name of an app of the server's configuration", x.Name)
			continue
		}
		err := c.Store.CheckModel(x.Model)
		var n *grown
		var l *Live
		var p *prepared
		if err == nil {
			p, err = m.prepare(ctx, x, false)
		}
		if err == nil {
			n, l, err = m.withFunction(p, nil)
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			m.unrestored[x.Name] = fmt.Errorf("function %q: %w", x.Name, err)
		default:
			m.spec, m.measured, m.live[x.Name] = n.spec, n.measured, l
		}
	}
	m.log = newEvents(c.Events, m.spec)
	return m, nil
}

// Unrestored has an error for every function of the store that could not be restored.
func (m *Manager) Unrestored() []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.unrestored))
}

// Current returns the state that an engine begins with: the spec with all functions and their measurements, and the
// functions.
func (m *Manager) Current() (*engine.Growth, []Live, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g, err := m.growth(m.spec, m.measured)
	return g, m.all(), err
}

// growth returns the growth to a spec with its profile.
func (m *Manager) growth(spec *serving.Spec, measured serving.Measurements) (*engine.Growth, error) {
	g := &engine.Growth{Spec: spec, Known: plan.Known{Measurements: measured}}
	if m.c.Predictor == nil && len(measured.Latency) == 0 {
		return g, nil
	}
	p, err := profile.NewTable(spec, measured, m.c.Statistic)
	if err != nil {
		return nil, err
	}
	g.Profile = p
	return g, nil
}

// all lists the open functions by name; m.mu is held.
func (m *Manager) all() []Live {
	out := make([]Live, 0, len(m.live))
	for _, l := range m.live {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b Live) int { return int(a.App) - int(b.App) })
	return out
}

// configuredApp returns the app of a name that is the configuration's and not a function, or None.
func (m *Manager) configuredApp(name string) serving.AppID {
	for a := range m.c.Spec.Apps {
		if m.c.Spec.Apps[a].Name == name {
			return serving.AppID(a)
		}
	}
	return serving.None
}

// grown is a spec that is not in force yet.
type grown struct {
	spec     *serving.Spec
	measured serving.Measurements
}

// prepared is a function with its latencies that is not in the spec yet.
type prepared struct {
	store.Function
	*repository.Described
	variant serving.Variant
}

// prepare checks a function of the store. If its record has no latencies, they are measured or predicted, with
// Config.Quick if quick is set and that can. It changes nothing, and others may change the spec meanwhile.
func (m *Manager) prepare(ctx context.Context, x store.Function, quick bool) (*prepared, error) {
	p := &prepared{Function: x}
	file := m.c.fileOf(&x, nil, 0)
	var err error
	if x.Python {
		most := 0
		if p.Described, most, err = m.host.Describe(ctx, &file); x.MaxBatch == 0 {
			x.MaxBatch = most
		}
	} else {
		p.Described, err = repository.Describe(file.Path)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, oip.Errorf(oip.Invalid, "model", "%v", err)
	}
	if p.variant, err = variantOf(&x, p.Described); err != nil {
		return nil, err
	}
	p.takeMemory()
	m.mu.Lock()
	spec := m.spec
	m.mu.Unlock()
	if err := fitsMachine(spec, p.variant.MemoryBytes); err != nil {
		return nil, err
	}
	n, l, err := m.addFunction(p, nil)
	if err != nil || x.Profile != nil || m.c.Predictor == nil {
		return p, err
	}
	subject := &Subject{Spec: n.spec, Variant: l.Variant, File: m.c.fileOf(&x, p.Described, p.variant.MaxBatch),
		Described: p.Described}
	if err := m.addLatencies(ctx, p, subject, quick); err != nil {
		return p, err
	}
	p.takeMemory()
	return p, fitsMachine(spec, p.variant.MemoryBytes+p.variant.ItemBytes)
}

// takeMemory has the variant take what was measured of it, unless the function says what it takes.
func (p *prepared) takeMemory() {
	var f profiler.File
	if p.Memory > 0 || p.Profile == nil || json.Unmarshal(p.Profile, &f) != nil {
		return // a record that cannot be read is told of where its latencies are
	}
	if loaded, item := f.MemoryOf(p.variant.Name); loaded > 0 {
		p.variant.MemoryBytes, p.variant.ItemBytes = loaded, item
	}
}

// withFunction returns the spec with a function in it, which replaces an earlier version, and binds its file. It takes
// places of free.
func (m *Manager) withFunction(p *prepared, free *serving.Free) (*grown, *Live, error) {
	n, l, err := m.addFunction(p, free)
	if err != nil {
		return nil, nil, err
	}
	file := m.c.fileOf(&p.Function, p.Described, p.variant.MaxBatch)
	m.host.Bind(l.Variant, &file)
	if l.Profile != nil {
		if n.measured, err = withProfile(n.spec, l.Variant, n.measured, l.Profile); err != nil {
			return nil, nil, err
		}
	}
	return n, l, nil
}

// variantOf returns the variant of a function. It fails when the function asks for batches that its model cannot take.
func variantOf(x *store.Function, d *repository.Described) (serving.Variant, error) {
	v := serving.Variant{
		Name: VariantName(x.Name, x.Version), Accuracy: 1, Version: fmt.Sprint(x.Version), MaxBatch: x.MaxBatch,
		MemoryBytes: x.Memory,
	}
	if v.MaxBatch == 0 {
		v.MaxBatch = config.FunctionDefaultBatch
	}
	if !d.Batched {
		if x.MaxBatch > 1 {
			return v, oip.Errorf(oip.Invalid, "max_batch",
				"is %d, but the model has no batch dimension: the first dimension of all its tensors would have to "+
					"be open", x.MaxBatch)
		}
		v.MaxBatch = 1
	}
	if v.MemoryBytes == 0 {
		v.MemoryBytes = x.Model.Bytes
	}
	return v, nil
}

// addFunction returns the spec with a function and its variant, which replace an earlier version. That must have the
// same inputs and outputs.
func (m *Manager) addFunction(p *prepared, free *serving.Free) (*grown, *Live, error) {
	x, d, v := p.Function, p.Described, p.variant
	app := m.c.App
	app.Name, app.SLO = x.Name, serving.SLO{Latency: x.Latency, Percentile: x.Percentile}
	app.MinInstances, app.MaxInstances, app.ColdWait = x.Least, x.Most, x.ColdWait
	n, l := &grown{}, &Live{Function: x, Described: d}
	m.mu.Lock()
	defer m.mu.Unlock()
	n.spec, n.measured = m.spec, m.measured
	if was := m.live[x.Name]; was == nil {
		n.spec, l.App, l.Variant = m.spec.WithApp(app, v, free)
	} else {
		if !reflect.DeepEqual(was.Described, d) {
			return nil, nil, oip.Errorf(oip.Invalid, "model",
				"it takes or gives other tensors than version %d: clients of that would fail. Delete the function "+
					"first, or give this one another name", was.Version)
		}
		l.App = was.App
		n.spec, l.Variant = m.spec.WithVersion(was.App, app, v, free)
	}
	n.measured = replaced(n.measured, l.Variant, serving.Measurements{}) // of what had its place
	if err := n.spec.Validate(); err != nil {
		return nil, nil, oip.Errorf(oip.Invalid, "", "%v", err)
	}
	return n, l, nil
}

// addLatencies measures or predicts the latencies of a function.
func (m *Manager) addLatencies(ctx context.Context, p *prepared, subject *Subject, quick bool) error {
	type found struct {
		f           *profiler.File
		predicted   bool
		err, missed error
	}
	answer := make(chan found, 1)
	err := m.underway.measure(ctx, func() {
		var x found
		if quick && m.c.Quick != nil {
			x.f, x.missed = m.c.Quick.Predict(ctx, subject)
			x.predicted = x.missed == nil
		}
		if x.f == nil {
			x.f, x.err = m.c.Predictor.Predict(ctx, subject)
		}
		answer <- x
	})
	if err != nil {
		return err
	}
	x := <-answer
	if x.err != nil {
		if ctx.Err() != nil {
			return x.err
		}
		return oip.Errorf(oip.Invalid, "model", "it cannot be run: %v", x.err)
	}
	if x.missed != nil {
		m.log.add(p.Name, "measure", fmt.Sprintf("measured, since it cannot be predicted: %v", x.missed))
	}
	p.Predicted = x.predicted
	p.Profile, err = json.Marshal(x.f)
	return err
}

// withProfile puts what a record says of a variant in place of what measurements say of it.
func withProfile(spec *serving.Spec, v serving.VariantID, to serving.Measurements,
	record json.RawMessage) (serving.Measurements, error) {
	var f profiler.File
	if err := json.Unmarshal(record, &f); err != nil {
		return to, fmt.Errorf("its profile: %w", err)
	}
	if err := f.Validate(); err != nil {
		return to, fmt.Errorf("its profile: %w", err)
	}
	got, err := f.MeasurementsOf(spec, v)
	if err != nil {
		return to, fmt.Errorf("its profile: %w", err)
	}
	return replaced(to, v, got), nil
}

// replaced returns measurements with others in place of those of a variant.
func replaced(m serving.Measurements, v serving.VariantID, by serving.Measurements) serving.Measurements {
	return m.Replaced(func(x serving.VariantID, _ serving.DeviceTypeID) bool { return x == v }, by)
}

// fitsMachine returns an error if no machine's memory holds a model.
func fitsMachine(spec *serving.Spec, bytes int64) error {
	most := int64(0)
	for _, w := range spec.Workers {
		limit := spec.DeviceTypes[w.DeviceType].MemoryBytes
		if limit <= 0 || bytes <= limit {
			return nil
		}
		most = max(most, limit)
	}
	return oip.Errorf(oip.Invalid, "memory_bytes", "the model takes %d bytes, the largest machine has %d", bytes, most)
}

// change runs do while no other call changes the spec. A model that panics while it is measured fails the change alone.
func (m *Manager) change(ctx context.Context, do func() error) error {
	select {
	case m.changing <- struct{}{}:
		defer func() { <-m.changing }()
		return dataplane.Safely("change", do)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// PutModel stores a model file of at most limit bytes; sum is its SHA-256 in hexadecimal.
func (m *Manager) PutModel(sum string, r io.Reader, limit int64) error {
	err := m.c.Store.PutModel(sum, r, limit)
	switch {
	case errors.Is(err, store.ErrTooLarge):
		return oip.Errorf(oip.TooLarge, "",
			"the model has more than %d bytes, the limit of this server (server.limits.model)", limit)
	case errors.Is(err, store.ErrSum):
		return oip.Errorf(oip.Invalid, "", "%v", err)
	}
	return err
}

// HasModel reports whether the model with a SHA-256 sum is stored.
func (m *Manager) HasModel(sum string) bool { return m.c.Store.HasModel(sum) }

// Deploy makes a function of a stored model. It replaces an earlier version. When it returns nil, the function is in
// the store, and its instances are being planned. It ends with ctx, after the deployment's timeout, with Cancel, and
// when a later deployment of the same name begins. Deployments of other names go on meanwhile.
func (m *Manager) Deploy(ctx context.Context, name string, d *Deployment) error {
	return m.deployAfter(ctx, name, d, func() {})
}

// deployAfter is Deploy, and calls begun once the deployment shows in Get and can be cancelled.
func (m *Manager) deployAfter(ctx context.Context, name string, d *Deployment, begun func()) error {
	return m.underway.run(ctx, name, d.timeout(), func(ctx context.Context) error {
		begun()
		err := dataplane.Safely("deployment", func() error { return m.deploy(ctx, name, d) })
		if p := (*dataplane.Panic)(nil); errors.As(err, &p) && m.c.Trouble != nil {
			m.c.Trouble(fmt.Errorf("function %q: %w", name, err))
		}
		if err != nil {
			m.log.add(name, "fail", "deployment: "+cmp.Or(context.Cause(ctx), err).Error())
		}
		return err
	})
}

// Cancel ends the deployment of a function that is under way. It reports whether there was one.
func (m *Manager) Cancel(ctx context.Context, name string) (bool, error) {
	return m.underway.cancel(ctx, name)
}

// Close ends all deployments that are under way, and refuses others.
func (m *Manager) Close() { m.underway.close() }

func (m *Manager) deploy(ctx context.Context, name string, d *Deployment) error {
	if d.Chain != "" {
		return m.deployChain(ctx, name, d)
	}
	x, err := d.record(name)
	if err != nil {
		return err
	}
	if _, chain := m.chain(name); chain {
		return oip.Errorf(oip.Invalid, "name", "%q is a chain: give the function another name", name)
	}
	if m.configuredApp(name) != serving.None {
		return oip.Errorf(oip.Invalid, "name",
			"%q is an app of the server's configuration: give the function another name", name)
	}
	if !m.HasModel(d.Model) {
		return oip.Errorf(oip.NotFound, "model_sha256", "there is no model %.80q: send it first", d.Model)
	}
	if x.Model.Bytes, err = m.c.Store.Size(d.Model); err != nil {
		return err
	}
	// Nobody else changes the versions of this name until the deployment has ended.
	if x.Version, err = m.c.Store.Next(name); err != nil {
		return err
	}
	p, err := m.prepare(ctx, x, d.Profile == Predict)
	if err != nil {
		return err
	}
	return m.change(ctx, func() error { return m.adoptPrepared(ctx, p) })
}

// adoptPrepared puts a prepared function into the store, the spec and service.
func (m *Manager) adoptPrepared(ctx context.Context, p *prepared) error {
	p.Deployed = time.Now().UTC().Truncate(time.Millisecond)
	free := m.host.Free()
	n, l, err := m.withFunction(p, &free)
	if err != nil {
		return err
	}
	g, err := m.growth(n.spec, n.measured)
	if err != nil {
		return err
	}
	if _, err := m.host.Plan(ctx, g); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return oip.Errorf(oip.Invalid, "", "no plan can be made with it: %v", err)
	}
	if err := m.c.Store.Put(l.Function); err != nil {
		return err
	}
	// The function is in the store, so the deployment is completed even if the client goes away.
	return m.put(g, nil, func() {
		m.live[l.Name] = l
		delete(m.unrestored, l.Name)
		m.log.add(l.Name, "deploy", fmt.Sprintf("version %d, model %.12s, %d bytes", l.Version, l.Model.SHA256,
			l.Model.Bytes))
	})
}

// Delete removes a function from the store and from service. Queries that it has accepted are answered. A deployment of
// it that is under way is cancelled.
func (m *Manager) Delete(ctx context.Context, name string) error {
	cancelled, err := m.Cancel(ctx, name)
	if err != nil {
		return err
	}
	if s, chain := m.chain(name); chain {
		if err := m.chains.Delete(ctx, name); err != nil {
			return err
		}
		m.log.add(name, "delete", fmt.Sprintf("version %d", s.Version))
		return nil
	}
	return m.change(ctx, func() error {
		m.mu.Lock()
		l := m.live[name]
		spec, measured, lost := m.spec, m.measured, m.unrestored[name]
		delete(m.unrestored, name)
		m.mu.Unlock()
		if l == nil && lost == nil {
			if cancelled {
				return nil
			}
			return unknown(name)
		}
		if err := m.c.Store.Delete(name); err != nil {
			return err
		}
		if l == nil {
			return nil
		}
		g, err := m.growth(spec.WithClosed(l.App), measured)
		if err != nil {
			return err
		}
		return m.put(g, nil, func() {
			delete(m.live, name)
			m.log.add(name, "delete", fmt.Sprintf("version %d", l.Version))
		})
	})
}

// put puts a growth into force: from now on the manager builds on it, and so does the host. Whatever changes while a
// server runs comes this way, while no other change does. with changes the functions along with it; m.mu is held.
func (m *Manager) put(g *engine.Growth, wiring []pipeline.Wiring, with func()) error {
	m.mu.Lock()
	m.spec, m.measured = g.Spec, g.Measurements
	with()
	open := m.all()
	m.mu.Unlock()
	return m.host.Grow(g, wiring, open)
}

func unknown(name string) error {
	return oip.Errorf(oip.NotFound, "name", "there is no function %.80q", name)
}

// List returns all functions by name.
func (m *Manager) List() []Status {
	m.mu.Lock()
	all := m.all()
	m.mu.Unlock()
	out := make([]Status, len(all))
	for k := range all {
		out[k] = m.status(&all[k])
	}
	if m.chains != nil {
		for _, s := range m.chains.List() {
			out = append(out, m.chainStatus(s))
		}
	}
	for _, name := range m.underway.names() {
		if !slices.ContainsFunc(out, func(s Status) bool { return s.Name == name }) {
			if p, _ := m.underway.of(name); p != nil {
				out = append(out, Status{Name: name, State: Deploying, Deploying: p})
			}
		}
	}
	slices.SortFunc(out, func(a, b Status) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// Get returns one function, or the deployment of one that is under way.
func (m *Manager) Get(name string) (Status, error) {
	m.mu.Lock()
	l := m.live[name]
	m.mu.Unlock()
	if l != nil {
		return m.status(l), nil
	}
	if s, chain := m.chain(name); chain {
		return s, nil
	}
	p, failed := m.underway.of(name)
	switch {
	case p != nil:
		return Status{Name: name, State: Deploying, Deploying: p}, nil
	case failed != "":
		return Status{}, oip.Errorf(oip.NotFound, "name", "there is no function %.80q: its deployment failed: %s", name,
			failed)
	}
	return Status{}, unknown(name)
}

func (m *Manager) status(l *Live) Status {
	state, ready := m.host.State(l)
	profile := ""
	if l.Profile != nil {
		if profile = ByMeasuring; l.Predicted {
			profile = ByPrediction
		}
	}
	underway, failed := m.underway.of(l.Name)
	return Status{Deploying: underway, LastFailure: failed, Profile: profile, PredictionError: l.Off,
		Name: l.Name, Version: l.Version, State: state,
		Instances: ready, Deployed: l.Deployed, Model: l.Model.SHA256, ModelBytes: l.Model.Bytes,
		LatencyMS: millis(l.Latency), Percentile: l.Percentile, MaxBatch: m.MaxBatch(l), MinInstances: l.Least,
		MaxInstances: l.Most,
		ColdWaitMS:   millis(l.ColdWait), Labels: l.Labels}
}

// MaxBatch returns the most items that a function takes in one request.
func (m *Manager) MaxBatch(l *Live) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spec.Variants[l.Variant].MaxBatch
}

// Logs returns the latest events of a function with a number above after, at most limit of them, oldest first. Events
// of a deleted function are returned as long as they are kept.
func (m *Manager) Logs(name string, after uint64, limit int) ([]Event, error) {
	out, known := m.log.of(name, after, limit)
	m.mu.Lock()
	open := m.live[name] != nil
	m.mu.Unlock()
	if _, chain := m.chain(name); chain {
		open = true
	}
	if !known && !open {
		return nil, unknown(name)
	}
	return out, nil
}

// Observe makes events of a step of the engine. It must be called on the goroutine of the engine's owner. The slices
// are not kept.
func (m *Manager) Observe(now serving.Time, in []engine.Input, out []engine.Decision) {
	m.log.observe(now, in, out)
}
