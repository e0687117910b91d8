package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Bounds of a file of lines.
const (
	fullFile    = 64 << 20 // bytes
	longestText = 512      // bytes of a text in an entry
)

// Lines is a file of JSON lines, bounded. A nil Lines writes nothing. Its methods may be called from many goroutines.
type Lines struct {
	path    string
	full    int64
	trouble func(error)

	mu     sync.Mutex
	file   *os.File
	size   int64
	failed bool
}

// OpenLines opens a file for appending, which only its owner can read. trouble is told once of every run of failures.
func OpenLines(path string, trouble func(error)) (*Lines, error) {
	l := &Lines{path: path, full: fullFile, trouble: trouble}
	return l, l.open()
}

func (l *Lines) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, st.Size()
	return nil
}

// Write appends an entry.
func (l *Lines) Write(entry any) {
	if l == nil {
		return
	}
	b, err := json.Marshal(entry)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		err = l.write(append(b, '\n'))
	}
	if err != nil && !l.failed && l.trouble != nil {
		l.trouble(fmt.Errorf("entries of %s are lost: %w", l.path, err))
	}
	l.failed = err != nil
}

func (l *Lines) write(b []byte) error {
	if l.file == nil || l.size > 0 && l.size+int64(len(b)) > l.full {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(b)
	l.size += int64(n)
	return err
}

func (l *Lines) rotate() error {
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
		if err := Rotate(l.path); err != nil {
			return err
		}
	}
	return l.open()
}

// KeptFiles is how many earlier files Rotate keeps.
const KeptFiles = 4

// Rotate makes room for a new file at a path: it moves PATH to PATH.1, what was there to PATH.2, and so on.
func Rotate(path string) error {
	for k := KeptFiles; k > 0; k-- {
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

// Close closes the file.
func (l *Lines) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// Entry is a line of the audit log, of a call that changes something, or of the access log. It holds no header, no
// parameter of an address and no body, so that no secret gets into it.
type Entry struct {
	Time     time.Time `json:"time"`
	ID       string    `json:"id,omitempty"` // of the request
	Who      string    `json:"who"`
	How      string    `json:"how"` // it is known
	Tenant   string    `json:"tenant,omitempty"`
	From     string    `json:"from"` // address
	Protocol string    `json:"protocol"`
	What     string    `json:"what"`             // method and path, or the gRPC method
	Target   string    `json:"target,omitempty"` // the model or app, where the path does not say it
	Result   string    `json:"result"`           // status
	Why      string    `json:"why,omitempty"`    // of a failure
	Millis   float64   `json:"ms"`
	Bytes    int64     `json:"bytes,omitempty"` // of the answer
}

// Cut returns at most so much of a text as an entry holds.
func Cut(s string) string { return s[:min(len(s), longestText)] }
