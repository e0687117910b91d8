package access

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookAgain is the time between two looks at a file for changes.
	lookAgain = time.Second
	// largestFile bounds the files of this package, in bytes.
	largestFile = 4 << 20
)

// Watched is what a file holds, read again when the file has changed. A file that cannot be read, or is wrong, leaves
// what was read before in force, and is reported once.
type Watched[T any] struct {
	path    string
	parse   func([]byte) (T, error)
	trouble func(error)

	value  atomic.Pointer[T]
	next   atomic.Int64 // when to look again, in Unix ns
	mu     sync.Mutex
	was    os.FileInfo
	failed string
}

// Watch reads a file. trouble is told of later failures; nil ignores them.
func Watch[T any](path string, trouble func(error), parse func([]byte) (T, error)) (*Watched[T], error) {
	w := &Watched[T]{path: path, parse: parse, trouble: trouble}
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := w.read(st); err != nil {
		return nil, err
	}
	return w, nil
}

// Get returns what the file holds. It looks at the file at most once a second.
func (w *Watched[T]) Get(now time.Time) T {
	if due := w.next.Load(); now.UnixNano() >= due && w.next.CompareAndSwap(due, now.Add(lookAgain).UnixNano()) {
		w.look()
	}
	return *w.value.Load()
}

func (w *Watched[T]) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	st, err := os.Stat(w.path)
	if err == nil {
		if w.was != nil && os.SameFile(w.was, st) && w.was.ModTime().Equal(st.ModTime()) && w.was.Size() == st.Size() {
			return
		}
		err = w.read(st)
	}
	if err == nil {
		w.failed = ""
		return
	}
	if text := err.Error(); text != w.failed {
		w.failed = text
		if w.trouble != nil {
			w.trouble(fmt.Errorf("what was read before stays in force: %w", err))
		}
	}
}

func (w *Watched[T]) read(st os.FileInfo) error {
	f, err := os.Open(w.path)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, largestFile+1))
	if err != nil {
		return err
	}
	if len(b) > largestFile {
		return fmt.Errorf("%s has more than %d bytes", w.path, largestFile)
	}
	v, err := w.parse(bytes.TrimPrefix(b, []byte("\ufeff")))
	if err != nil {
		return fmt.Errorf("%s: %w", w.path, err)
	}
	w.was = st
	w.value.Store(&v)
	return nil
}
