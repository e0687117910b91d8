package fleet

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Batches that run at the same time slow each other down: those of one instance, and those of instances that share all
// of a worker, without parts or cores of their own. The slow-down was measured between batches of one variant. It is
// taken to hold between different variants (docs/papers.md, Scrooge).

// Concurrency returns how many batches run at the same time as those of i, its own included.
func (f *View) Concurrency(i *Instance) int {
	if i.sharesWorker {
		return int(f.onShared[i.p.Key.Worker])
	}
	return len(i.running)
}

// RecountConcurrency corrects the concurrency of a batch that just began, after others began at the same instant. It
// returns the run time that is then believed, and false when nothing has changed.
func (f *Fleet) RecountConcurrency(i *Instance, id serving.BatchID) (expected time.Duration, changed bool) {
	n := f.Concurrency(i)
	for k := range i.running {
		if b := &i.running[k]; b.ID == id && b.Concurrency < n {
			expected = f.profile.Latency(b.Variant, i.p.DeviceType, b.Items, n)
			b.Concurrency, b.Expected = n, b.Started.Add(expected)
			return expected, true
		}
	}
	return 0, false
}

// noteSharing records at launch whether an instance shares its worker.
func (f *Fleet) noteSharing(i *Instance) {
	i.sharesWorker = i.p.Cores == 0 && !f.spec.DeviceTypes[i.p.DeviceType].Part
	for len(f.onShared) <= int(i.p.Key.Worker) {
		f.onShared = append(f.onShared, 0)
	}
}

// countBatches adds n to the batches that run on i's worker; n is negative for batches that ended.
func (f *Fleet) countBatches(i *Instance, n int32) {
	if i.sharesWorker {
		f.onShared[i.p.Key.Worker] += n
	}
}
