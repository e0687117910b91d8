package saved

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluice-serving/sluice/docs"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/dashboard"
	"github.com/sluice-serving/sluice/internal/engine/journal"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/files"
	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/web"
)

// Bounds of what a saved run's dashboard reads.
const (
	savedSeconds = 4 * 3600
	savedQueries = 1 << 17
	mostSaved    = 200      // files of a folder
	largestSaved = 64 << 20 // bytes of a report or of rows
	savedDepth   = 3        // folders below the one that was named
	reportDepth  = 3        // of a report in a file
)

// Saved is a run, or several, that a dashboard shows from files.
type Saved struct {
	name    string
	run     *savedRun // nil without a journal
	reports []savedReport
	figures []savedFigures
	board   *board.Board
	answers *dashboard.Dashboard
	about   func(paper, figure string) (title, shows string)
	skipped []string // journals of the folder that are not shown, and why
}

// About names what papers and their figures are, for the page; "" for unknown ones.
func (s *Saved) About(f func(paper, figure string) (title, shows string)) { s.about = f }

// savedReport is a report as simulate, load and demo write it.
type savedReport struct {
	Name   string         `json:"name"`
	Report *report.Report `json:"report"`
}

// savedFigures are the rows that reproduce writes; see reproduce.Row.
type savedFigures struct {
	Name string          `json:"name"`
	Rows json.RawMessage `json:"rows"`
	// About has a line for each figure of the rows, by its name, and Title is that of the paper.
	About map[string]string `json:"about,omitempty"`
	Title string            `json:"title,omitempty"`

	paper string
	shown []string // names of figures
}

// savedRun is a journal that is replayed.
type savedRun struct {
	path    string
	file    *os.File
	journal *journal.Reader
	steps   *steps.Log
	now     atomic.Int64
	notice  string // why it ends early
}

// OpenSaved reads a journal, a report or a folder of them. With a speed above 0 the journal is played that many times
// as fast as it was recorded, while Play runs; else it is read at once. The caller closes what it gets. An error is of
// kind fault.Config.
func OpenSaved(path string, speed float64) (*Saved, error) {
	nothing := &serving.Spec{}
	s := &Saved{name: filepath.Base(path)}
	s.board = board.New(nothing, steps.New(nothing, steps.Options{Queries: 1, Batches: 1}), board.Options{})
	st, err := os.Stat(path)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	switch {
	case st.IsDir():
		err = s.folder(path)
	case st.Mode().IsRegular():
		err = s.file(path, filepath.Base(path), true)
	default:
		err = fault.Errorf(fault.Config, "%s is no file: name a journal, a report or a folder of them", path)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.run == nil && len(s.reports) == 0 && len(s.figures) == 0 {
		return nil, fault.Errorf(fault.Config, "%s holds no journal, report or rows.json: write some with 'sluice "+
			"simulate --journal FILE --json', 'sluice load --out FOLDER' or 'sluice reproduce PAPER --out FOLDER'%s",
			path, strings.Join(append([]string{""}, s.skipped...), "\n"))
	}
	info := dashboard.Info{Name: s.name, Version: host.Version(), Source: "saved", Run: s.run != nil}
	c := dashboard.Config{Board: s.board}
	if s.run != nil {
		h := s.run.journal.Header()
		info.System = h.System
		c.Log = s.run.steps
		if speed > 0 {
			info.Source = "live"
			c.Clock = func() serving.Time { return serving.Time(s.run.now.Load()) }
		} else if err := s.Play(context.Background(), 0); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if len(s.reports)+len(s.figures) > 0 {
		c.Figures = http.HandlerFunc(s.answer)
	}
	c.Info = info
	s.answers = dashboard.New(c)
	return s, nil
}

// folder reads the files of a folder and of those below it.
func (s *Saved) folder(root string) error {
	read := 0
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path) // path is below root
		if e.IsDir() {
			if strings.Count(name, string(filepath.Separator)) >= savedDepth {
				return filepath.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(path); ext != ".json" && ext != ".journal" || read >= mostSaved {
			return nil
		}
		// A pipe would wait for who writes into it. A link may lead to one, or to nothing.
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			return nil //nolint:nilerr // a folder may hold other things
		}
		read++
		return s.file(path, name, false)
	})
}

// file takes a file for what it begins with. must says that it has to be something.
func (s *Saved) file(path, name string, must bool) error {
	f, err := os.Open(path)
	if err != nil {
		return fault.Wrap(fault.Config, err)
	}
	head := make([]byte, 64)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return errors.Join(fault.Wrap(fault.Config, err), f.Close())
	}
	if bytes.HasPrefix(head[:n], []byte(journal.Head)) && s.run == nil {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return errors.Join(err, f.Close())
		}
		err := s.openRun(f, path)
		if err != nil && !must {
			s.skipped = append(s.skipped, err.Error())
			return nil
		}
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if bytes.HasPrefix(head[:n], []byte(journal.Head)) {
		s.skipped = append(s.skipped, fmt.Sprintf("%s is not shown: %s is the journal of this page", path, s.run.path))
		return nil
	}
	data, err := files.Read(path, largestSaved)
	if err != nil {
		if must {
			return err
		}
		return nil // a folder may hold other large files
	}
	var rows []struct {
		Paper  string `json:"paper"`
		Figure string `json:"figure"`
	}
	if json.Unmarshal(data, &rows) == nil && len(rows) > 0 && rows[0].Paper != "" {
		f := savedFigures{Name: rows[0].Paper + ": " + filepath.ToSlash(filepath.Dir(name)), Rows: data,
			paper: rows[0].Paper}
		for _, r := range rows {
			if r.Paper == f.paper && !slices.Contains(f.shown, r.Figure) {
				f.shown = append(f.shown, r.Figure)
			}
		}
		s.figures = append(s.figures, f)
		return nil
	}
	found := reportsIn(strings.TrimSuffix(filepath.ToSlash(name), ".json"), data, reportDepth)
	if s.reports = append(s.reports, found...); len(found) > 0 {
		return nil
	}
	if must {
		return fault.Errorf(fault.Config, "%s is neither a journal nor a report nor the rows of 'sluice reproduce'",
			path)
	}
	return nil
}

// reportsIn are the reports in what commands print as JSON: a report, a list of them, or an object that has some, such
// as the live and the simulated one. They are named after the file and where in it they are, or after their run.
func reportsIn(name string, data json.RawMessage, depth int) (out []savedReport) {
	r := &report.Report{}
	if err := json.Unmarshal(data, r); err == nil && len(r.Apps) > 0 && r.DurationS > 0 {
		return []savedReport{{Name: name, Report: r}}
	}
	if depth == 0 {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil {
		for k, x := range list {
			for _, r := range reportsIn(name, x, depth-1) {
				if len(list) > 1 {
					r.Name += ": " + cmp.Or(r.Report.Name, strconv.Itoa(k+1))
				}
				out = append(out, r)
			}
		}
		return out
	}
	var parts map[string]json.RawMessage
	if json.Unmarshal(data, &parts) == nil {
		for _, key := range slices.Sorted(maps.Keys(parts)) {
			at := name
			if key != "report" { // of a load generator
				at += ": " + key
			}
			out = append(out, reportsIn(at, parts[key], depth-1)...)
		}
	}
	return out
}

func (s *Saved) openRun(f *os.File, path string) error {
	j, err := journal.NewReader(f)
	if err != nil {
		return errors.Join(fault.Errorf(fault.Config, "%s: %w", path, err), f.Close())
	}
	spec := j.Header().Spec
	s.run = &savedRun{path: path, file: f, journal: j,
		steps: steps.New(spec, steps.Options{Queries: savedQueries, Batches: savedQueries, Decisions: 1})}
	h := j.Header()
	o := board.Options{Seconds: savedSeconds, Learns: h.Learn}
	if known, err := h.Believed(spec, h.Measurements); err == nil { // the engine says what is wrong
		o.Measured = known
	}
	s.board = board.New(spec, s.run.steps, o)
	return nil
}

// Play replays the journal, at so many times the speed at which it was recorded; 0 is as fast as possible. It returns
// at its end. It ends early, and Notice says why, where the journal is cut off or damaged, or where this version of the
// program decides otherwise.
func (s *Saved) Play(ctx context.Context, speed float64) error {
	r := s.run
	if r == nil {
		return nil
	}
	e, err := systems.Recorded(r.journal.Header())
	if err != nil {
		return fault.Errorf(fault.Config, "%s: %w", r.path, err)
	}
	e.Watch(r.steps.Weigh)
	begun := time.Now()
	for {
		st, err := r.journal.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			r.notice = fmt.Sprintf("%s: %v: only what was before is shown", r.path, err)
			return nil
		}
		if speed > 0 {
			due := begun.Add(time.Duration(float64(st.At) / speed))
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Until(due)):
			}
		}
		if st.Crash != "" {
			r.notice = fmt.Sprintf("at %v the run ended, since %s", st.At, st.Crash)
			return nil
		}
		out := e.Step(st.At, st.In)
		if !slices.EqualFunc(out, st.Out, func(d engine.Decision, text string) bool { return d.String() == text }) {
			r.notice = fmt.Sprintf("at %v this version of the program decides otherwise than the recorded one: only "+
				"what was before is shown; see 'sluice replay'", st.At)
			return nil
		}
		r.now.Store(int64(st.At))
		r.steps.Observe(st.At, st.In, out)
	}
}

// Notice says why less than the whole is shown, once Play has returned; empty where it is not so.
func (s *Saved) Notice() string {
	said := s.skipped
	if s.run != nil && s.run.notice != "" {
		said = append(slices.Clone(said), s.run.notice)
	}
	return strings.Join(said, "\n")
}

// Handler answers the page and its questions.
func (s *Saved) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(dashboard.Prefix, s.answers.Handler())
	mux.Handle("/", web.Handler())
	mux.Handle(docs.Prefix, docs.Handler())
	return mux
}

// Run makes the events of the page until ctx ends.
func (s *Saved) Run(ctx context.Context) { s.answers.Run(ctx) }

// Close releases the journal.
func (s *Saved) Close() error {
	if s.run == nil {
		return nil
	}
	return s.run.file.Close()
}

// answer answers GET /api/v1/figures.
func (s *Saved) answer(w http.ResponseWriter, _ *http.Request) {
	figures := append([]savedFigures{}, s.figures...)
	for k := range figures {
		f := &figures[k]
		f.About = make(map[string]string)
		for _, name := range f.shown {
			if s.about != nil {
				f.Title, f.About[name] = s.about(f.paper, name)
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"schema": board.Schema, "reports": append([]savedReport{}, s.reports...), "figures": figures,
	})
}
