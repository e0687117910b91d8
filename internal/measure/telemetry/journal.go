package telemetry

import "github.com/prometheus/client_golang/prometheus"

// CountJournal adds to the metrics how many bytes the journal has and how many steps are missing in it, as read returns
// them. It may be called once.
func (t *Telemetry) CountJournal(read func() (written, missed uint64)) {
	t.registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sluice_journal_bytes_total", Help: "Bytes written to the journal.",
		}, func() float64 { written, _ := read(); return float64(written) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sluice_journal_missed_steps_total",
			Help: "Steps that are not in the journal, because it is full or could not be written.",
		}, func() float64 { _, missed := read(); return float64(missed) }))
}
