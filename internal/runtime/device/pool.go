package device

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Variables of CUDA. The order of the bus is that of nvidia-smi; CUDA's own begins with the fastest.
const (
	EnvVisible = "CUDA_VISIBLE_DEVICES"
	envOrder   = "CUDA_DEVICE_ORDER"
	// envPercent bounds the part of the multiprocessors of a process; the multi-process service (MPS) looks at it.
	envPercent = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
)

// Pool knows which accelerators of this machine the workers of this process have. It does not change.
type Pool struct {
	visible []string   // identifiers that this process may use, in its own order
	workers [][]string // by worker: its accelerators
}

// Wanted is what a worker is to have.
type Wanted struct {
	Name  string // for messages
	Count int    // accelerators
	// IDs names them: indices or UUIDs of nvidia-smi. Nil takes the next that no worker before has.
	IDs []string
}

// Visible returns the identifiers of the accelerators that this process may use: those that CUDA_VISIBLE_DEVICES
// lists, else all of the machine, by index.
func Visible(getenv func(string) string, m *Machine) []string {
	if listed := strings.TrimSpace(getenv(EnvVisible)); listed != "" {
		var ids []string
		for id := range strings.SplitSeq(listed, ",") {
			if id = strings.TrimSpace(id); id == "" || id == "-1" {
				break // CUDA looks no further either
			}
			ids = append(ids, id)
		}
		return ids
	}
	ids := make([]string, len(m.Accelerators))
	for i := range ids {
		ids[i] = strconv.Itoa(m.Accelerators[i].Index)
	}
	return ids
}

// NewPool gives workers their accelerators, by worker. It fails where a worker wants more than there are left, or one
// that is not visible; two workers may name the same one, which they then share.
func NewPool(visible []string, workers []Wanted) (*Pool, error) {
	p := &Pool{visible: visible, workers: make([][]string, len(workers))}
	named := map[string]bool{}
	for i, w := range workers {
		for _, id := range w.IDs {
			if !slices.Contains(visible, id) {
				return nil, fmt.Errorf("worker %q: accelerator %q is not among those that this process may use, %v; "+
					"`sluice devices` lists them", w.Name, id, visible)
			}
			named[id] = true
		}
		p.workers[i] = w.IDs
	}
	free := slices.DeleteFunc(slices.Clone(visible), func(id string) bool { return named[id] })
	for i, w := range workers {
		if w.IDs == nil {
			if w.Count > len(free) {
				return nil, fmt.Errorf("worker %q is to have %d accelerators, and %d of the %d that this process may "+
					"use are left; `sluice devices` lists them", w.Name, w.Count, len(free), len(visible))
			}
			p.workers[i], free = free[:w.Count:w.Count], free[w.Count:]
		}
	}
	return p, nil
}

// Share is what an instance has: an accelerator, a part of one, or none.
type Share struct {
	// ID is the accelerator's identifier in CUDA_VISIBLE_DEVICES; empty for none.
	ID string
	// Ordinal is its number for a library in this process, which sees those of CUDA_VISIBLE_DEVICES in their order; -1
	// for none.
	Ordinal int
	// Percent is the part of it; 0 is all.
	Percent int
}

// Of returns what an instance of a worker has. One with a part (percent above 0) has it of the worker's accelerator
// number at. Others take turns by their number, so that a worker with several accelerators has about as many on each.
func (p *Pool) Of(worker, at, percent, instance int) Share {
	has := p.workers[worker]
	if len(has) == 0 {
		return Share{Ordinal: -1}
	}
	if percent == 0 {
		at = instance
	}
	id := has[max(at, 0)%len(has)]
	return Share{ID: id, Ordinal: slices.Index(p.visible, id), Percent: percent}
}

// Environment returns the variables that make a process use what an instance has: it sees that accelerator alone, as
// number 0, or none.
func (s Share) Environment() map[string]string {
	env := map[string]string{EnvVisible: s.ID, envOrder: "PCI_BUS_ID"}
	if s.ID != "" && s.Percent > 0 && s.Percent < 100 {
		env[envPercent] = strconv.Itoa(s.Percent)
	}
	return env
}

// names reports whether an identifier of CUDA_VISIBLE_DEVICES means an accelerator.
func names(id string, a *Accelerator) bool {
	if n, err := strconv.Atoi(id); err == nil {
		return n == a.Index
	}
	return len(id) > len("GPU-") && strings.HasPrefix(a.UUID, id)
}
