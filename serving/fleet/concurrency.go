package fleet

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Batches that run at the same time slow each other down: those of one instance, and those of instances that share all
// of a worker, without parts or cores of their own. The slow-down was measured between batches of one variant. It is
// taken to hold between different variants (docs/profiling.md).

// sharedWorker is what the instances that share all of a worker have in common.
type sharedWorker struct {
	instances []*Instance // that live, ascending by ID
	running   int         // batches on them
	level     int         // batches that may run on those that take turns: the most slots that one of them has
}

// Concurrency returns how many batches run at the same time as those of i, its own included.
func (f *View) Concurrency(i *Instance) int {
	if i.shared != nil {
		return i.shared.running
	}
	return len(i.running)
}

// Sharing returns the instances that share all of a worker with i, i included, ascending by ID; nil for one with a part
// of the worker for itself. The slice is the fleet's own: it must not be changed, nor kept while instances come and go.
func (f *View) Sharing(i *Instance) []*Instance {
	if i.shared == nil {
		return nil
	}
	return i.shared.instances
}

// RecountConcurrency corrects the concurrency of a batch that just began, after others began at the same instant. It
// returns the run time that is then believed, and false when nothing has changed.
func (f *Fleet) RecountConcurrency(i *Instance, id serving.BatchID) (expected time.Duration, changed bool) {
	n := f.Concurrency(i)
	for k := range i.running {
		if b := &i.running[k]; b.ID == id && b.Concurrency < n {
			expected = f.BatchLatency(b.Variant, i.p.DeviceType, b.Head, b.Tasks, b.Items, n)
			b.Concurrency, b.Expected = n, b.Started.Add(expected)
			return expected, true
		}
	}
	return 0, false
}

// share notes at its launch whether an instance shares its worker.
func (f *Fleet) share(i *Instance) {
	d := &f.spec.DeviceTypes[i.p.DeviceType]
	if d.Part || i.p.Cores > 0 && i.p.Cores < d.Cores {
		return
	}
	for len(f.shared) <= int(i.p.Key.Worker) {
		f.shared = append(f.shared, &sharedWorker{})
	}
	i.shared = f.shared[i.p.Key.Worker]
	i.shared.instances = append(i.shared.instances, i)
	i.shared.setLevel()
}

// unshare ends that.
func (i *Instance) unshare() {
	if w := i.shared; w != nil {
		w.instances = remove(w.instances, i)
		w.setLevel()
	}
}

func (w *sharedWorker) setLevel() {
	w.level = 0
	for _, i := range w.instances {
		if i.p.TimeShared {
			w.level = max(w.level, i.p.Slots)
		}
	}
}

// countBatch counts a batch that began on i, or ended when n is negative.
func (i *Instance) countBatch(n int) {
	if i.shared != nil {
		i.shared.running += n
	}
}
