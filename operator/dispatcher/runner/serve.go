package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/operator/cell"
)

// retryEvery is the time between two tries of a configuration that does not start.
const retryEvery = 5 * time.Second

// firstSettle bounds how long a run that follows no other may take to be ready: nobody answers meanwhile, and machines
// that are there already are ready sooner.
const firstSettle = 10 * time.Second

// serve runs the latest configuration of a cell until ctx ends.
func (m *Manager) serve(ctx context.Context, u *unit) {
	for ctx.Err() == nil {
		again := m.follow(ctx, u)
		select {
		case <-ctx.Done():
		case <-u.changed:
		case <-again:
		}
	}
	m.mu.Lock()
	old := u.run
	u.run, u.ready = nil, false
	m.mu.Unlock()
	m.Changed(u.cell)
	if old != nil {
		old.retire(m.Drain, m.Log)
	}
}

// follow changes over to the latest configuration, if that is another one. It returns when to try again after a
// failure; nil waits for another configuration.
func (m *Manager) follow(ctx context.Context, u *unit) <-chan time.Time {
	m.mu.Lock()
	files, version, old := u.files, u.version, u.run
	m.mu.Unlock()
	if len(files) == 0 || old != nil && old.Version == version {
		return nil
	}
	next, err := m.begin(ctx, u.cell, files, old)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		m.Log.Error("a cell's configuration cannot be served", "cell", u.cell, "version", version, "error", err,
			"serving", old != nil)
		m.mu.Lock()
		u.failure = err
		m.mu.Unlock()
		m.Changed(u.cell)
		return time.After(retryEvery)
	}
	next.Version = version
	m.settle(ctx, next, old, version, u)
	m.mu.Lock()
	u.run, u.ready, u.failure = next, true, nil
	m.mu.Unlock()
	m.Log.Info("serving a cell", "cell", u.cell, "version", version)
	m.Changed(u.cell)
	if old != nil {
		m.all.Go(func() { old.retire(m.Drain, m.Log) })
	}
	return nil
}

// begin starts a run. It plans for what was seen last.
func (m *Manager) begin(ctx context.Context, number int, files map[string]string, old *Run) (*Run, error) {
	folder, clean, err := m.folder(number)
	if err != nil {
		return nil, err
	}
	machines, ok := files[cell.KeyMachines]
	shares, _ := cell.SharesOf(files) // of a cell that was not made of resources: all of each app
	var before Before
	switch {
	case old != nil:
		before = old.seen()
		for name, rate := range before.Rates {
			before.Rates[name] = rate * shares.Of(name) / old.shares.Of(name)
		}
	case m.Before != nil:
		before = m.Before(ctx, number, machines)
	}
	log := m.Log.With("cell", number)
	var supply suppliedMachines
	if ok && m.Supply != nil {
		if supply.Supply, supply.close, err = m.Supply(number, []byte(machines)); err != nil {
			clean()
			return nil, fmt.Errorf("%s: %w", cell.KeyMachines, err)
		}
	}
	r, err := start(ctx, number, folder, files, before, supply.Supply, m.Net, m.Certificate, log)
	if err != nil {
		supply.end()
		clean()
		return nil, err
	}
	r.clean = func() { supply.end(); clean() }
	r.shares = shares
	return r, nil
}

// remembered is how long it takes until only what a run has seen itself counts.
const remembered = time.Minute

// Rates are the queries/s of the latest minute, by app. The part of it that the run has not lived yet had the rates
// that it was told to expect: what waited for the run comes at once, and would look like a load that apps are divided
// anew for. So a rate that was seen for a moment is forgotten within minutes, however often configurations change.
func (r *Run) Rates() map[string]float64 {
	out := make(map[string]float64)
	expected, past := r.Profiled.Demand(), r.Server.Past()
	for a, name := range r.Profiled.AppNames() {
		out[name] = soFar(past[name].Rate, expected[a], time.Since(r.Since))
	}
	return out
}

// soFar is the rate of the latest minute of a run of an age that has seen one and was told to expect another.
func soFar(seen, expected float64, age time.Duration) float64 {
	if age <= 0 {
		return expected
	}
	part := min(age.Seconds()/remembered.Seconds(), 1)
	return part*seen + (1-part)*expected
}

// settle waits until a run is ready to take over: all of it is, or every app that answers now does so there, too. After
// a while it takes over as it is, so that one app whose machines do not come does not hold up the others.
func (m *Manager) settle(ctx context.Context, next, old *Run, version string, u *unit) {
	within := m.Settle
	if old == nil {
		within = min(within, firstSettle)
	}
	limit := time.NewTimer(within)
	defer limit.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !next.Server.Ready() && (old == nil || !covers(next, old)) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		case <-limit.C:
			m.Log.Warn("a cell's configuration is not ready and is served all the same", "cell", u.cell,
				"version", version, "after", within)
			return
		}
	}
}

// covers reports whether every app that the old run has ready and that the new one has is ready there, too.
func covers(next, old *Run) bool {
	now := next.Server.ReadyApps()
	for app, ready := range old.Server.ReadyApps() {
		if there, has := now[app]; has && ready && !there {
			return false
		}
	}
	return true
}
