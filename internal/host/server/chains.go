package server

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/serving"
)

// chains implements functions.Chains. Each chain has a repository of its own in the store, with the models of its
// functions, and is served from there as an app of a file is.
type chains struct {
	blank *catalog // with what catalogs share
	kept  *store.Functions

	changing sync.Mutex // held while a chain comes or goes

	mu  sync.Mutex
	all map[string]*chain
}

// chain is one that is kept.
type chain struct {
	store.Chain
	catalog *catalog
	slo     serving.SLO
	failed  string // why it is not served; "" where it is
}

func newChains(blank *catalog, kept *store.Functions) *chains {
	return &chains{blank: blank, kept: kept, all: make(map[string]*chain)}
}

// has reports whether there is a chain; c may be nil.
func (c *chains) has(name string) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[name] != nil
}

// begin serves the chains that are kept.
func (c *chains) begin(ctx context.Context) {
	c.changing.Lock()
	defer c.changing.Unlock()
	all, damaged := c.kept.Chains()
	for _, err := range damaged {
		c.blank.log.Error("a chain is left out: deploy it again or delete it", "error", err)
	}
	for k := range all {
		x := &chain{Chain: all[k], catalog: c.open()}
		c.mu.Lock()
		_, there := c.all[x.Name]
		if !there {
			c.all[x.Name] = x
		}
		c.mu.Unlock()
		if there {
			continue // it was deployed anew meanwhile
		}
		err := error(oip.Errorf(oip.Invalid, "name", "a model of the server has its name"))
		if _, served := c.blank.service.Lookup(x.Name); !served {
			err = c.serve(ctx, x)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.blank.log.Error("a chain is not served: deploy it again or delete it", "chain", x.Name, "error", err)
			c.mu.Lock()
			x.failed = err.Error()
			c.mu.Unlock()
		}
	}
}

func (c *chains) open() *catalog {
	return &catalog{
		base: c.blank.base, run: c.blank.run, service: c.blank.service, manager: c.blank.manager,
		refiner: c.blank.refiner, log: c.blank.log, entries: make(map[string]*catalogEntry),
	}
}

// serve serves what a chain has become, and returns once it is ready. Where it cannot be, its catalog is as before.
func (c *chains) serve(ctx context.Context, x *chain) error {
	root := c.kept.ChainRepository(x.Name, x.Version)
	f, err := x.catalog.base.Whole().WithChain([]byte(x.Text), "chain.yaml", root)
	if err != nil {
		return oip.Errorf(oip.Invalid, "", "%v", err)
	}
	x.slo = serving.SLO{Latency: time.Duration(f.Apps[0].SLO.Latency), Percentile: f.Apps[0].SLO.Percentile}
	n := x.catalog
	wasRoot, was := n.root, n.current()
	n.mu.Lock()
	n.root, n.file = root, f
	n.mu.Unlock()
	if err = n.load(ctx, x.Name, server.Loading{}); err != nil {
		n.mu.Lock()
		n.root, n.file = wasRoot, was
		n.mu.Unlock()
	}
	return err
}

// Deploy implements functions.Chains.
func (c *chains) Deploy(ctx context.Context, name, text string, deployed map[string]store.Function) (*store.Chain,
	error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	c.mu.Lock()
	was := c.all[name]
	c.mu.Unlock()
	if _, served := c.blank.service.Lookup(name); served && was == nil {
		return nil, oip.Errorf(oip.Invalid, "name", "a model of the server has the name %q: give the chain another one",
			name)
	}
	x, err := c.recordOf(name, text, deployed)
	if err != nil {
		return nil, err
	}
	if was != nil {
		x.Version, x.catalog = was.Version+1, was.catalog
	}
	if err := c.kept.StageChain(&x.Chain); err != nil {
		return nil, err
	}
	if err := c.serve(ctx, x); err != nil {
		_ = c.kept.DropChain(name, x.Version)
		if was == nil {
			c.blank.service.show(name, nil)
		}
		return nil, err
	}
	c.mu.Lock()
	c.all[name] = x
	c.mu.Unlock()
	if err := c.kept.PutChain(&x.Chain); err != nil {
		return nil, oip.Errorf(oip.Internal, "", "version %d of chain %q is served until the server ends: it cannot "+
			"be kept: %v", x.Version, name, err)
	}
	return &x.Chain, nil
}

// recordOf reads the text of a chain and finds its functions.
func (c *chains) recordOf(name, text string, deployed map[string]store.Function) (*chain, error) {
	app, err := config.ParseChain([]byte(text), "chain.yaml")
	if err != nil {
		return nil, oip.Errorf(oip.Invalid, "chain", "%v", err)
	}
	if app.Name != name {
		return nil, oip.Errorf(oip.Invalid, "name", "%q is not the name in the file, %q", name, app.Name)
	}
	x := &chain{catalog: c.open(), Chain: store.Chain{
		Name: name, Version: 1, Deployed: time.Now().UTC().Truncate(time.Millisecond), Text: text,
		Models: make(map[string]store.Model),
	}}
	for _, s := range app.Stages {
		for _, v := range s.Variants {
			f, there := deployed[v.Model]
			switch {
			case !there:
				return nil, oip.Errorf(oip.NotFound, "chain", "stage %q: there is no function %.80q: deploy it first",
					s.Name, v.Model)
			case f.Python:
				return nil, oip.Errorf(oip.Unsupported, "chain", "stage %q: function %q is a file of Python: chains "+
					"are of ONNX models and of functions of this program", s.Name, v.Model)
			}
			x.Models[v.Model] = f.Model
		}
	}
	return x, nil
}

// Delete implements functions.Chains.
func (c *chains) Delete(ctx context.Context, name string) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	c.mu.Lock()
	x := c.all[name]
	delete(c.all, name)
	c.mu.Unlock()
	if x == nil {
		return nil
	}
	// Once the record is gone the chain does not come back with the next start, even if this ends here.
	if err := c.kept.DeleteChain(name); err != nil {
		return err
	}
	if x.catalog.entry(name) == nil {
		return nil // it was never served, and another model may have its name
	}
	return x.catalog.remove(ctx, name)
}

// List implements functions.Chains.
func (c *chains) List() []functions.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []functions.Status
	for _, name := range slices.Sorted(maps.Keys(c.all)) {
		out = append(out, c.status(c.all[name]))
	}
	return out
}

// Get implements functions.Chains.
func (c *chains) Get(name string) (functions.Status, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.all[name]
	if x == nil {
		return functions.Status{}, false
	}
	return c.status(x), true
}

// status is a chain as clients see it; c.mu is held.
func (c *chains) status(x *chain) functions.Status {
	s := functions.Status{
		Name: x.Name, Version: x.Version, Deployed: x.Deployed, LatencyMS: x.slo.Latency.Seconds() * 1e3,
		Percentile: x.slo.Percentile, Functions: slices.Sorted(maps.Keys(x.Models)), LastFailure: x.failed,
		State: functions.Failing,
	}
	for _, m := range x.Models { // any order: a sum
		s.ModelBytes += m.Bytes
	}
	if x.failed == "" {
		s.State, s.Instances = c.state(x)
	}
	return s
}

// state is the state of a chain, and how many instances its stage with the fewest has.
func (c *chains) state(x *chain) (state string, ready int) {
	e := x.catalog.entry(x.Name)
	if e == nil || len(e.apps) == 0 {
		return functions.Starting, 0
	}
	state = functions.Starting
	c.blank.service.plane.Inspect(func(g *engine.Engine) {
		for k, s := range g.Spec().Apps[e.apps[0]].Stages {
			if n := len(g.Fleet().Ready(s)); k == 0 || n < ready {
				ready = n
			}
		}
		if g.Wakes() {
			state = functions.Idle
		}
	})
	switch {
	case ready > 0:
		state = functions.Ready
	case c.blank.service.isBroken(e.model):
		state = functions.Failing
	}
	return state, ready
}
