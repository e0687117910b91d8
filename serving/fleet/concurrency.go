package fleet

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Batches that run at the same time slow each other down. Those of an instance do, and so do those of several instances
// that share all of a worker: neither on a part of it nor with cores of their own. How much was measured between
// batches of one variant, and is taken to hold between those of different ones (docs/papers.md, Scrooge).

// Concurrency returns how many batches run beside each other where i runs, its own included.
func (f *View) Concurrency(i *Instance) int {
	if i.sharesWorker {
		return int(f.beside[i.p.Key.Worker])
	}
	return len(i.running)
}

// Join has a batch that began a moment ago count all those that began beside it at the same time. It returns the run
// time that is then believed, and false when the batch has counted them already.
func (f *Fleet) Join(i *Instance, id serving.BatchID) (expected time.Duration, changed bool) {
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

// noteSharing notes at its launch whether an instance shares its worker.
func (f *Fleet) noteSharing(i *Instance) {
	i.sharesWorker = i.p.Cores == 0 && !f.spec.DeviceTypes[i.p.DeviceType].Part
	for len(f.beside) <= int(i.p.Key.Worker) {
		f.beside = append(f.beside, 0)
	}
}

// countBatches counts batches that began on i, or ended when n is negative.
func (f *Fleet) countBatches(i *Instance, n int32) {
	if i.sharesWorker {
		f.beside[i.p.Key.Worker] += n
	}
}
