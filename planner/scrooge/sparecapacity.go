package scrooge

// easy is how much of a machine may be used by smaller batches than the cheapest ones: what is used by more has queues.
const smallBatchLimit = 0.5

// calm takes smaller batches where a machine has room that is paid for anyway (ours): one after the other the piece
// that is nearest to its module's part of the objective, by the next smaller batch with as many at once, so that no
// instance has to start anew for it. Full batches at the end of their time cost least, and leave nothing for what comes
// unevenly.
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

// smaller is the largest smaller batch of a piece that is in time earlier and for which its machine has room enough.
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
