package device

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Variables of CUDA. The order of the bus is that of nvidia-smi; CUDA's own begins with the fastest.
const (
	EnvVisible = "CUDA_VISIBLE_DEVICES"
	envOrder   = "CUDA_DEVICE_ORDER"
	// envPercent bounds the part of the multiprocessors of a process; the multi-process service (MPS) looks at it.
	envPercent = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
)

// Pool knows which accelerators of this machine the workers of this process have, and how many instances use each. It
// is safe for concurrent use.
type Pool struct {
	visible []string   // identifiers that this process may use, in its own order
	workers [][]string // by worker: its accelerators

	mu   sync.Mutex
	uses [][]int // by worker and accelerator: leases
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
	p := &Pool{visible: visible, workers: make([][]string, len(workers)), uses: make([][]int, len(workers))}
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
		p.uses[i] = make([]int, len(p.workers[i]))
	}
	return p, nil
}

// Lease is an instance's use of an accelerator, or its being without one.
type Lease struct {
	pool    *Pool
	worker  int
	at      int // index among the worker's; -1 for none
	percent int
	once    sync.Once
}

// Take gives an instance of a worker one of its accelerators: number at of them, or with a negative at the one that
// fewest use. percent is the part of it that the instance may use; 0 means all. A worker without accelerators gives a
// lease of none.
func (p *Pool) Take(worker, at, percent int) (*Lease, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	uses := p.uses[worker]
	switch {
	case len(uses) == 0:
		at = -1
	case at >= len(uses):
		return nil, fmt.Errorf("accelerator %d of a worker that has %d", at, len(uses))
	case at < 0:
		at = slices.Index(uses, slices.Min(uses))
	}
	if at >= 0 {
		uses[at]++
	}
	return &Lease{pool: p, worker: worker, at: at, percent: percent}, nil
}

// Release ends the use. Further calls do nothing.
func (l *Lease) Release() {
	l.once.Do(func() {
		l.pool.mu.Lock()
		defer l.pool.mu.Unlock()
		if l.at >= 0 {
			l.pool.uses[l.worker][l.at]--
		}
	})
}

// ID is the identifier of the accelerator in CUDA_VISIBLE_DEVICES; empty for none.
func (l *Lease) ID() string {
	if l.at < 0 {
		return ""
	}
	return l.pool.workers[l.worker][l.at]
}

// Ordinal is the accelerator's number for a library in this process, which sees those of CUDA_VISIBLE_DEVICES in their
// order; -1 for none.
func (l *Lease) Ordinal() int {
	if l.at < 0 {
		return -1
	}
	return slices.Index(l.pool.visible, l.ID())
}

// Environ returns the variables, as NAME=VALUE, that make a process use what was leased: it sees that accelerator
// alone, as number 0, or none.
func (l *Lease) Environ() []string {
	env := []string{EnvVisible + "=" + l.ID(), envOrder + "=PCI_BUS_ID"}
	if l.at >= 0 && l.percent > 0 && l.percent < 100 {
		env = append(env, envPercent+"="+strconv.Itoa(l.percent))
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
