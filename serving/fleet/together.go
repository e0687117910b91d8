package fleet

// Batches that run at the same time slow each other down. Those of an instance do, and so do those of several instances
// that share all of a worker: neither on a part of it nor with cores of their own. How much was measured between
// batches of one variant, and is taken to hold between those of different ones (docs/papers.md, Scrooge).

// AtOnce returns how many batches run beside each other where i runs, its own included.
func (f *Fleet) AtOnce(i *Instance) int {
	if i.shares {
		return int(f.together[i.Key.Worker])
	}
	return len(i.Running)
}

// placed notes at its launch whether an instance shares its worker.
func (f *Fleet) placed(i *Instance) {
	i.shares = i.Cores == 0 && !f.Spec.DeviceTypes[i.DeviceType].Part
	for len(f.together) <= int(i.Key.Worker) {
		f.together = append(f.together, 0)
	}
}

// running counts batches that began on i, or ended when n is negative.
func (f *Fleet) running(i *Instance, n int32) {
	if i.shares {
		f.together[i.Key.Worker] += n
	}
}
