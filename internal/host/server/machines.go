package server

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/provider"
	"github.com/sluice-serving/sluice/serving"
)

// startMachines has the plane hear of machines from now on. starts are by device type how long they took before.
func (s *Server) startMachines(run *machines.Backends, starts map[string]time.Duration) {
	n := run.News
	if n == nil {
		return
	}
	s.recallStarts(run, starts)
	n.Hear(s.plane)
	var from provider.Supply = run.Processes
	if given := s.planned.Options().Machines; given != nil {
		from = given
	}
	stop := from.Watch(func(e provider.Event) { s.machineChanged(run, e) })
	s.onRelease(func() error { stop(); return nil })
}

// recallStarts has the plane believe how long machines took to come in an earlier run.
func (s *Server) recallStarts(run *machines.Backends, starts map[string]time.Duration) {
	spec, told := s.planned.Spec(), make(map[serving.DeviceTypeID]bool)
	for w := range spec.Workers {
		kind := spec.Workers[w].DeviceType
		took := starts[spec.DeviceTypes[kind].Name]
		if took <= 0 || told[kind] || w >= len(run.Supplied) || run.Supplied[w] == nil {
			continue
		}
		told[kind] = true
		s.plane.MachineCame(serving.WorkerID(w), took)
	}
}

// closePlane ends the data plane. Supplied machines stay as they are, with their models: who serves next takes them
// over.
func (s *Server) closePlane() {
	s.Detach()
	s.plane.Close()
}

// machineChanged passes on what happened to a machine.
func (s *Server) machineChanged(run *machines.Backends, e provider.Event) {
	workers := s.planned.Spec().Workers
	w := serving.WorkerID(slices.IndexFunc(workers, func(x serving.Worker) bool { return x.Name == e.Worker }))
	if w < 0 || run.Supplied[w] == nil {
		s.log.Warn("news of a machine that no worker of this configuration has", "worker", e.Worker, "what", e.Kind)
		return
	}
	s.log.Warn("machine", "worker", e.Worker, "what", e.Kind.String(), "within", e.Within, "why", e.Why)
	switch e.Kind {
	case provider.Leaving:
		s.plane.MachineLeaving(w)
	case provider.Lost:
		run.Supplied[w].Lose(e.Why)
		s.plane.MachineLost(w)
	case provider.Missing:
		s.plane.MachineMissing(w, e.Within)
	case provider.Staying:
		s.plane.MachineStays(w)
	}
}
