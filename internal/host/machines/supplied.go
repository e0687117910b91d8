package machines

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/provider"
	"github.com/sluice-serving/sluice/internal/provider/process"
	"github.com/sluice-serving/sluice/internal/provider/supplied"
	"github.com/sluice-serving/sluice/internal/runtime/openinference"
	"github.com/sluice-serving/sluice/serving"
)

// supply makes the backend of a worker whose machine is supplied.
func (b *Backends) supply(w serving.WorkerID, log *slog.Logger) error {
	f := b.Fleet
	worker, c := &f.Tables.Spec.Workers[w], f.Tables.Backends[w]
	device := &f.Tables.Spec.DeviceTypes[worker.DeviceType]
	from, err := b.supplyOf(c, worker.Name)
	if err != nil {
		return err
	}
	if b.Supplied == nil {
		b.Supplied, b.News = make([]*supplied.Backend, len(f.Tables.Backends)), &machineNews{}
	}
	news := b.News
	b.Supplied[w] = supplied.New(supplied.Config{
		Worker: provider.Worker{Name: worker.Name, DeviceType: device.Name},
		Supply: from, Linger: time.Duration(c.Linger), Keep: device.Tenure != serving.Rented,
		ModelOf: b.modelOf,
		Connect: func(address string) (supplied.Server, error) {
			return b.remote(config.Backend{Address: address, LoadModels: true}, log)
		},
		Had: func(m provider.Machine, err error) {
			news.tell(func(p *dataplane.Plane) { had(p, w, m, err) })
		},
		Trouble: f.teller(log),
	})
	return nil
}

// modelOf returns the name of a variant's model in the repositories of machines; "" for one that is sent to them.
func (b *Backends) modelOf(v serving.VariantID) string {
	if b.Sent.Has(v) || int(v) >= len(b.Fleet.Tables.Variants) || v < 0 {
		return ""
	}
	return b.Fleet.Tables.Variants[v].Model
}

// supplyOf returns what supplies the machine of a worker: the caller of this package, else the worker's command.
func (b *Backends) supplyOf(c config.Backend, worker string) (provider.Supply, error) {
	switch {
	case b.Fleet.Supply != nil:
		return b.Fleet.Supply, nil
	case len(c.Command) == 0:
		return nil, fault.Errorf(fault.Config, "worker %q: backend.kind is supplied, and nothing supplies machines "+
			"here: run it under an operator that does, or write backend.command, which starts one here", worker)
	case b.Processes == nil:
		f := b.Fleet
		b.Processes = process.New(process.Config{
			Command: func(w provider.Worker) []string { return f.commandOf(w.Name) },
			Log: func(worker, line string) {
				f.Notice("machine " + worker + ": " + line)
			},
		})
	}
	return b.Processes, nil
}

// commandOf is the command that starts the machine of a worker.
func (f *Fleet) commandOf(worker string) []string {
	w := slices.IndexFunc(f.Tables.Spec.Workers, func(x serving.Worker) bool { return x.Name == worker })
	return f.Tables.Backends[w].Command
}

// Close ends the machines that were started here, and processes that wait for models.
func (b *Backends) Close() {
	for _, p := range b.Python {
		if p != nil {
			p.Close()
		}
	}
	if b.Processes != nil {
		_ = b.Processes.Close()
	}
}

// had tells a plane how asking for a machine has ended.
func had(p *dataplane.Plane, w serving.WorkerID, m provider.Machine, err error) {
	var none *provider.Unavailable
	switch {
	case errors.As(err, &none):
		p.MachineMissing(w, none.For)
	case err == nil && m.Started > 0:
		p.MachineCame(w, m.Started)
	}
}

// machineNews hands what happens to machines to the plane, once there is one.
type machineNews struct {
	mu      sync.Mutex
	plane   *dataplane.Plane
	waiting []func(*dataplane.Plane)
}

func (n *machineNews) tell(f func(*dataplane.Plane)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.plane == nil {
		n.waiting = append(n.waiting, f)
		return
	}
	f(n.plane)
}

// Hear has a plane told of what happened, and of what happens from now on.
func (n *machineNews) Hear(p *dataplane.Plane) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.plane = p
	for _, f := range n.waiting {
		f(p)
	}
	n.waiting = nil
}

var _ supplied.Server = (*openinference.Backend)(nil)
