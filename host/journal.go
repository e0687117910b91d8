package host

import (
	"errors"
	"os"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/engine/journal"
	"github.com/sluice-serving/sluice/serving"
)

// observer is called with every step of an engine. It must not keep the slices.
type observer func(now serving.Time, in []engine.Input, out []engine.Decision)

// journalHeader has everything that is needed to build the run's engine for a replay.
func (p *Planned) journalHeader() journal.Header {
	known := p.measurements
	if p.startsUnprofiled() {
		known = serving.Measurements{}
	}
	h := journal.Header{
		Statistic: plannedStatistic, Provides: p.planner.Provides(), Spec: p.Spec(), Measurements: known,
	}
	p.system.Record(&h)
	return h
}

// openJournal makes a file, or replaces one. record writes a step to it, and closing returns the first error of
// writing.
func (p *Planned) openJournal(path string, mode os.FileMode) (record observer, closing func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return nil, nil, err
	}
	j, err := journal.NewWriter(f, p.journalHeader())
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return func(now serving.Time, in []engine.Input, out []engine.Decision) {
		_ = j.Step(now, in, out) // the error stays, and Flush returns it
	}, func() error { return errors.Join(j.Flush(), f.Close()) }, nil
}
