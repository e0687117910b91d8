package functions

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/serving"
)

// Chains serves chains of functions: several under one name and one objective.
type Chains interface {
	// Deploy serves a chain, which is kept, in the place of an earlier version. It returns its record once it is ready.
	// functions has all that are deployed, by name.
	Deploy(ctx context.Context, name, text string, functions map[string]store.Function) (*store.Chain, error)
	// Delete ends a chain.
	Delete(ctx context.Context, name string) error
	// Get returns one chain; false where there is none. List returns all of them.
	Get(name string) (Status, bool)
	List() []Status
}

// SetChains has chains be deployed. It is called once, before the first deployment.
func (m *Manager) SetChains(c Chains) { m.chains = c }

// chain returns a chain as clients see it.
func (m *Manager) chain(name string) (Status, bool) {
	if m.chains == nil {
		return Status{}, false
	}
	s, ok := m.chains.Get(name)
	return m.chainStatus(s), ok
}

// chainStatus adds what is under way to the status of a chain.
func (m *Manager) chainStatus(s Status) Status {
	underway, failed := m.underway.of(s.Name)
	s.Deploying, s.LastFailure = underway, cmp.Or(failed, s.LastFailure)
	return s
}

// check returns what is wrong with a deployment.
func (d *Deployment) check(name string) error {
	if d.Chain == "" {
		_, err := d.record(name)
		return err
	}
	if err := d.checkShared(name, "chain"); err != nil {
		return err
	}
	if d.Model != "" {
		return oip.Errorf(oip.Invalid, "model_sha256", "belongs to a function, and this is a chain of them")
	}
	return nil
}

func (m *Manager) deployChain(ctx context.Context, name string, d *Deployment) error {
	if err := d.check(name); err != nil {
		return err
	}
	if m.chains == nil {
		return oip.Errorf(oip.Unsupported, "chain", "this server runs no chains: its models do not run in its process")
	}
	m.mu.Lock()
	all := make(map[string]store.Function, len(m.live))
	for n, l := range m.live {
		all[n] = l.Function
	}
	m.mu.Unlock()
	if _, there := all[name]; there || m.configuredApp(name) != serving.None {
		return oip.Errorf(oip.Invalid, "name", "%q is a function, or an app of the server's configuration: give the "+
			"chain another name", name)
	}
	c, err := m.chains.Deploy(ctx, name, d.Chain, all)
	if err == nil {
		m.log.add(name, "deploy", chainText(c))
	}
	return err
}

// chainText says what a version of a chain is made of.
func chainText(c *store.Chain) string {
	text := fmt.Sprintf("version %d of", c.Version)
	for _, f := range slices.Sorted(maps.Keys(c.Models)) {
		text += fmt.Sprintf(" %s (%.12s)", f, c.Models[f].SHA256)
	}
	return text
}
