package scrooge

// smallBatchLimit is the utilisation up to which smaller batches are used. Above it queues form.
const smallBatchLimit = 0.5

// useSpareCapacity replaces batches by smaller ones where a machine has spare time that is paid for anyway (ours). It
// starts with the piece that uses most of its module's budget. Slots stay as they are, so that nothing is reloaded.
// Full batches that end just in time are the cheapest, but leave no slack for uneven arrivals.
func (c *candidate) useSpareCapacity() {
	for k := range c.packing.bins {
		b := &c.packing.bins[k]
		for {
			best, tightest := -1, 0.0
			var mode Mode
			for n := range b.pieces {
				p := &b.pieces[n]
				if t := float64(p.mode.WorstLatency(p.rate)) / float64(p.budget); t > tightest {
					if m, ok := c.smallerBatch(b, p); ok {
						best, tightest, mode = n, t, m
					}
				}
			}
			if best < 0 {
				break
			}
			p := b.pieces[best]
			b.room += p.utilization()
			p.mode = mode
			b.room -= p.utilization()
			b.pieces[best] = p
		}
	}
	c.count()
}

// smallerBatch returns the largest smaller batch for a piece that is in time earlier and for which its machine has
// room.
func (c *candidate) smallerBatch(b *bin, p *piece) (best Mode, ok bool) {
	for _, m := range c.solutions[p.graph].modes[p.stage] {
		if m.Type != p.mode.Type || m.Tag != p.mode.Tag || m.Slots != p.mode.Slots || m.Batch >= p.mode.Batch ||
			p.rate > m.Rate() || m.WorstLatency(p.rate) >= p.mode.WorstLatency(p.rate) {
			continue
		}
		if 1-b.room-p.utilization()+p.rate/m.Rate() <= smallBatchLimit && (!ok || m.Batch > best.Batch) {
			best, ok = m, true
		}
	}
	return best, ok
}
