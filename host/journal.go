package host

import (
	"errors"
	"fmt"
	"io/fs"
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

// openJournal makes a file, or replaces one. record writes a step to it. failed is called once, with the first error of
// writing, such as a full disk; nothing is written from then on. closing returns that error as well.
func (p *Planned) openJournal(path string, mode os.FileMode, failed func(error)) (record observer,
	closing func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return nil, nil, err
	}
	j, err := journal.NewWriter(f, p.journalHeader())
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	told := false
	return func(now serving.Time, in []engine.Input, out []engine.Decision) {
		if err := j.Step(now, in, out); err != nil && !told { // the error stays, and Flush returns it
			told = true
			failed(err)
		}
	}, func() error { return errors.Join(j.Flush(), f.Close()) }, nil
}

// keptJournals is how many journals of earlier runs are kept.
const keptJournals = 4

// rotateJournal moves the journal of an earlier run to PATH.1, that one to PATH.2, and so on. A server that starts
// again must not destroy the record of why it had to.
func rotateJournal(path string) error {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() || st.Size() == 0 {
		return nil //nolint:nilerr // nothing to keep; what is wrong with the path is found when it is opened
	}
	for k := keptJournals; k > 0; k-- {
		from := path
		if k > 1 {
			from = fmt.Sprintf("%s.%d", path, k-1)
		}
		if err := os.Rename(from, fmt.Sprintf("%s.%d", path, k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
