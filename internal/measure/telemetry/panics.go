package telemetry

// Panicked counts a panic that did not end the process, by what has panicked, in a word or two.
func (t *Telemetry) Panicked(what string) { t.metrics.panics.WithLabelValues(what).Inc() }
