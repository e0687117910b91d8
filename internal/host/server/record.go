package server

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/samples"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Bounds of what waits to be written. What does not fit is left out: serving does not wait for a disk.
const (
	recordQueue   = 64
	largestRecord = 16 << 20 // bytes of a request's inputs
)

// recorder writes the inputs of a share of the requests to files, for `sluice profile --agree`. The oldest files go
// when all of them have more bytes than allowed.
type recorder struct {
	folder string
	share  float64
	limit  int64
	log    *slog.Logger
	queue  chan recorded
	done   chan struct{}

	files []recordFile // oldest first
	total int64
}

type recorded struct {
	app    string
	inputs []tensor.Tensor
}

type recordFile struct {
	path string
	size int64
	made time.Time
}

// openRecorder starts the recorder that the file asks for; nil where it does not.
func (s *Server) openRecorder() (*recorder, error) {
	f := s.planned.File()
	c := &f.Server.Record
	if c.Folder == "" {
		return nil, nil
	}
	r := &recorder{folder: f.Path(c.Folder), share: c.Share, limit: int64(c.Size), log: s.log,
		queue: make(chan recorded, recordQueue), done: make(chan struct{})}
	if err := r.list(); err != nil {
		return nil, fault.Errorf(fault.Config, "server.record.folder: %w", err)
	}
	go r.write()
	s.onRelease(func() error { close(r.queue); <-r.done; return nil })
	return r, nil
}

// list finds what earlier runs have recorded.
func (r *recorder) list() error {
	if err := os.MkdirAll(r.folder, 0o700); err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(r.folder, "*", "*"+samples.RequestExtension))
	for _, path := range found {
		if st, err := os.Stat(path); err == nil {
			r.files = append(r.files, recordFile{path, st.Size(), st.ModTime()})
			r.total += st.Size()
		}
	}
	slices.SortFunc(r.files, func(a, b recordFile) int {
		return cmp.Or(a.made.Compare(b.made), cmp.Compare(a.path, b.path))
	})
	return err
}

// take has a share of the requests recorded. A nil recorder records none. It does not wait.
func (r *recorder) take(spec *serving.Spec, q *dataplane.Request) {
	if r == nil || rand.Float64() >= r.share || q.App < 0 || int(q.App) >= len(spec.Apps) {
		return
	}
	if tensor.TotalBytes(q.Inputs) > largestRecord {
		return
	}
	select {
	case r.queue <- recorded{spec.Apps[q.App].Name, slices.Clone(q.Inputs)}:
	default:
	}
}

func (r *recorder) write() {
	defer close(r.done)
	failed := false
	for x := range r.queue {
		if err := r.put(&x); err != nil && !failed {
			failed = true // once: the next requests fare no better
			r.log.Warn("requests are not recorded", "error", err)
		}
	}
}

func (r *recorder) put(x *recorded) error {
	data, err := samples.EncodeRequest(x.inputs)
	if err != nil || int64(len(data)) > r.limit {
		return err
	}
	for r.total+int64(len(data)) > r.limit && len(r.files) > 0 {
		if err := os.Remove(r.files[0].path); err != nil && !os.IsNotExist(err) {
			return err
		}
		r.total -= r.files[0].size
		r.files = r.files[1:]
	}
	now := time.Now()
	name := fmt.Sprintf("%s-%04x%s", now.UTC().Format("20060102T150405.000000"), rand.Uint32N(1<<16),
		samples.RequestExtension)
	dir := filepath.Join(r.folder, folderName(x.app))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil { // clients' data: for its owner alone
		return err
	}
	r.files = append(r.files, recordFile{path, int64(len(data)), now})
	r.total += int64(len(data))
	return nil
}

// folderName makes a folder's name of an app's.
func folderName(app string) string {
	return strings.Map(func(c rune) rune {
		if c == filepath.Separator || c == '.' {
			return '_'
		}
		return c
	}, app)
}
