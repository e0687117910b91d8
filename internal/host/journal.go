package host

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"sync/atomic"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/engine/journal"
	"github.com/sluice-serving/sluice/serving"
)

// Observer is called with every step of an engine. It must not keep the slices.
type Observer func(now serving.Time, in []engine.Input, out []engine.Decision)

// JournalHeader has everything that is needed to build the run's engine for a replay.
func (p *Planned) JournalHeader() journal.Header {
	known := p.measurements
	if p.StartsUnprofiled() {
		known = serving.Measurements{}
	}
	h := journal.Header{
		Statistic: PlannedStatistic, Provides: p.planner.Provides(), Spec: p.Spec(), Measurements: known,
	}
	p.system.Record(&h)
	return h
}

// JournalCounts is what of a run is in its journal. It is safe for concurrent use.
type JournalCounts struct{ Written, Missed atomic.Uint64 } // bytes, and steps that were not recorded

// errJournalFull is the error of a journal that has reached its limit. What is written can be replayed.
var errJournalFull = errors.New("it has reached telemetry.journal_limit")

// boundedFile is a file that takes a number of bytes.
type boundedFile struct {
	*os.File
	left   int64
	counts *JournalCounts
	held   uint64 // steps since the last write
}

// Write implements io.Writer.
func (f *boundedFile) Write(b []byte) (int, error) {
	full := int64(len(b)) > f.left
	if full {
		b = b[:bytes.LastIndexByte(b[:f.left], '\n')+1] // the last line is whole
	}
	n, err := f.File.Write(b)
	f.left -= int64(n)
	f.counts.Written.Add(uint64(n))
	switch {
	case full:
		f.left = 0
		f.held -= min(f.held, uint64(bytes.Count(b[:n], []byte{'\n'})))
		err = cmp.Or(err, errJournalFull)
	case err == nil:
		f.held = 0
	}
	return n, err
}

// JournalFile is the journal of a run as a file.
type JournalFile struct {
	j      *journal.Writer
	f      *boundedFile
	failed func(error)
	told   bool
}

// OpenJournal makes a file of at most limit bytes, or replaces one. failed is called once, with the first error of
// writing, such as a full disk; nothing is written from then on, and counts says how much.
func (p *Planned) OpenJournal(path string, mode os.FileMode, limit int64, counts *JournalCounts, failed func(error)) (
	*JournalFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return nil, err
	}
	f := &boundedFile{File: file, left: limit, counts: counts}
	j, err := journal.NewWriter(f, p.JournalHeader())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &JournalFile{j: j, f: f, failed: failed}, nil
}

// Record is an observer that writes a step.
func (x *JournalFile) Record(now serving.Time, in []engine.Input, out []engine.Decision) {
	x.f.held++
	if err := x.j.Step(now, in, out); err != nil { // the error stays, and close returns it
		x.f.counts.Missed.Add(x.f.held)
		x.f.held = 0
		if !x.told {
			x.told = true
			x.failed(err)
		}
	}
}

// Crash writes everything, and why the engine did not end a step in which it was told in.
func (x *JournalFile) Crash(now serving.Time, in []engine.Input, why string) error {
	return errors.Join(x.j.Crash(now, in, why), x.j.Flush())
}

// Close writes what is left. It returns the error of failed as well. It does nothing where no journal was opened.
func (x *JournalFile) Close() error {
	if x == nil {
		return nil
	}
	return errors.Join(x.j.Flush(), x.f.Close())
}

// RotateJournal keeps the journals of earlier runs. A server that starts again must not destroy the
// record of why it had to.
func RotateJournal(path string) error {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() || st.Size() == 0 {
		return nil //nolint:nilerr // nothing to keep; what is wrong with the path is found when it is opened
	}
	return access.Rotate(path)
}
