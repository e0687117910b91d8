package engine

// beginTogether lets batches that began in this step where they share a machine count for each other, whichever of them
// was started first: what is believed of them, and what is learned from them, is of so many at once.
func (e *Engine) beginTogether() {
	for k := range e.out {
		d := &e.out[k]
		if d.Kind != StartBatch {
			continue
		}
		i := e.fleet.Instance(d.Instance)
		n := e.fleet.AtOnce(i)
		for r := range i.Running {
			if b := &i.Running[r]; b.ID == d.Batch && b.AtOnce < n {
				b.AtOnce = n
				d.Expected = e.profile.Latency(b.Variant, i.DeviceType, b.Items, n)
				b.Expected = b.Started.Add(d.Expected)
			}
		}
	}
}
