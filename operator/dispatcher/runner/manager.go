package runner

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/internal/api/listen"
	"github.com/sluice-serving/sluice/internal/provider"
)

// Supplier makes the machine supply of a cell, of its machines.json; close ends it and leaves the machines as they are.
type Supplier func(cell int, machines []byte) (supply provider.Supply, close func(), err error)

// Options configure a Manager.
type Options struct {
	// Store is a folder that outlives the process; each cell has one of its own in it. Empty for a temporary one.
	Store string
	// Supply is nil where no worker's machine is supplied.
	Supply Supplier
	// Before returns what was seen last of a cell, for a run that follows no other; nil knows nothing. machines is its
	// machines.json, "" without one.
	Before func(ctx context.Context, cell int, machines string) Before
	// Changed is called when a cell has become ready, has another configuration, or has failed.
	Changed func(cell int)
	Log     *slog.Logger
	// Certificate returns the certificate of a caller over gRPC that whoever hands queries to runs has verified, nil
	// for none. The connections of callers are its own, and so is TLS.
	Certificate func(context.Context) *x509.Certificate
	// Linger is how long a cell that was handed over is still served, for queries on their way; default 3 s.
	Linger time.Duration
	// Drain bounds how long a run that ends may take to answer what it has; default 60 s.
	Drain time.Duration
	// Settle bounds how long a new configuration may take to be ready before it replaces the old one all the same;
	// default 2 min.
	Settle time.Duration
	// Net is what runs listen on, and reach machines over.
	Net listen.Net
}

// Before is what was seen of a cell before a run of it begins.
type Before struct {
	Rates  map[string]float64       // queries/s by app
	Starts map[string]time.Duration // by machine type, how long machines took to come
}

// Manager has the runs of all cells. Its methods are safe for concurrent use.
type Manager struct {
	Options
	mu    sync.Mutex
	units map[int]*unit
	all   sync.WaitGroup
}

// unit is a cell of this process.
type unit struct {
	cell    int
	files   map[string]string
	version string
	wanted  bool
	stop    context.CancelFunc // of its loop; nil while it has none
	ended   chan struct{}
	changed chan struct{}
	run     *Run // takes queries; nil for none
	ready   bool
	failure error // of the latest configuration
}

// New returns a manager without cells.
func New(o Options) *Manager {
	set := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	set(&o.Linger, 3*time.Second)
	set(&o.Drain, time.Minute)
	set(&o.Settle, 2*time.Minute)
	if o.Certificate == nil {
		o.Certificate = func(context.Context) *x509.Certificate { return nil }
	}
	if o.Changed == nil {
		o.Changed = func(int) {}
	}
	return &Manager{Options: o, units: make(map[int]*unit)}
}

// Version names a configuration by its content.
func Version(files map[string]string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_, _ = fmt.Fprintf(h, "%d %s %d %s", len(name), name, len(files[name]), files[name])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Configure gives a cell its configuration. A cell that is served changes over to it.
func (m *Manager) Configure(cell int, files map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.unit(cell)
	v := Version(files)
	if v == u.version {
		return
	}
	u.files, u.version = maps.Clone(files), v
	select {
	case u.changed <- struct{}{}:
	default:
	}
}

func (m *Manager) unit(cell int) *unit {
	u := m.units[cell]
	if u == nil {
		u = &unit{cell: cell, changed: make(chan struct{}, 1)}
		m.units[cell] = u
	}
	return u
}

// Prepare has a cell get ready to be served.
func (m *Manager) Prepare(cell int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.unit(cell)
	if u.wanted {
		return
	}
	u.wanted = true
	ctx, stop := context.WithCancel(context.Background())
	before, ended := u.ended, make(chan struct{})
	u.stop, u.ended = stop, ended
	m.all.Go(func() {
		defer close(ended)
		if before != nil {
			<-before // the cell was served until a moment ago
		}
		m.serve(ctx, u)
	})
}

// Prepared reports whether a cell is ready.
func (m *Manager) Prepared(cell int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.unit(cell).ready
}

// Release ends to serve a cell.
func (m *Manager) Release(cell int, handedOver bool) {
	m.mu.Lock()
	u := m.unit(cell)
	if !u.wanted {
		m.mu.Unlock()
		return
	}
	u.wanted = false
	stop := u.stop
	m.mu.Unlock()
	if handedOver {
		time.AfterFunc(m.Linger, stop)
		return
	}
	stop()
}

// Close ends all cells, after what they have accepted.
func (m *Manager) Close() {
	m.mu.Lock()
	for _, u := range m.units {
		if u.stop != nil {
			u.wanted = false
			u.stop()
		}
	}
	m.mu.Unlock()
	m.all.Wait()
}

// Use returns the run that answers the queries of a cell, or nil. The caller calls its Done when the query has ended.
func (m *Manager) Use(cell int) *Run {
	m.mu.Lock()
	u := m.units[cell]
	var r *Run
	if u != nil {
		r = u.run
	}
	m.mu.Unlock()
	if r == nil || !r.use() {
		return nil
	}
	return r
}

// Failure is why a cell's latest configuration is not served; nil where it is.
func (m *Manager) Failure(cell int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u := m.units[cell]; u != nil {
		return u.failure
	}
	return nil
}

// Runs are those that take queries, by cell. They may end at any time.
func (m *Manager) Runs() map[int]*Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[int]*Run)
	for n, u := range m.units {
		if u.run != nil {
			out[n] = u.run
		}
	}
	return out
}

// folder returns the folder of a cell's run, and what removes it.
func (m *Manager) folder(cell int) (string, func(), error) {
	if m.Store != "" {
		dir := filepath.Join(m.Store, fmt.Sprintf("cell-%d", cell))
		return dir, func() {}, os.MkdirAll(dir, 0o700)
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("sluice-cell-%d-", cell))
	return dir, func() { _ = os.RemoveAll(dir) }, err
}
