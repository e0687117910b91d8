package operators

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

// Format is the field "format" of a file of operator profiles: name and version of the layout.
const Format = "sluice-operators/1"

// maxStore is the largest file that Open reads, in bytes.
const maxStore = 64 << 20

// Store keeps the times of operators on one host, by key. It is safe for concurrent use.
type Store struct {
	mu      sync.Mutex
	path    string // without a path and a table, times last as long as the process
	table   Table
	unsaved map[string]Timing // times that the table does not have yet
	host    profiler.Host
	times   map[string]Timing
}

// Table is a table of a database in which a Store keeps its times, instead of a file.
type Table interface {
	// Each calls do for every entry until do returns an error.
	Each(do func(key string, value []byte) error) error
	// Keep writes all entries or none. A nil value removes its key.
	Keep(entries map[string][]byte) error
}

// tableEntry is a time in a table.
type tableEntry struct {
	Timing
	Host string `json:"host"` // a digest
}

// limits of a table
const (
	maxTableEntries = 200_000
	maxKeyLength    = 1 << 10 // bytes; longer keys are hashed
)

// OpenTable returns a store of the times in a table. It removes those of another host and implausible ones, so that
// they are measured anew.
func OpenTable(table Table, host profiler.Host) (*Store, error) {
	s := &Store{table: table, unsaved: map[string]Timing{}, host: host, times: map[string]Timing{}}
	gone := make(map[string][]byte)
	here := digestOf(describe(host))
	err := table.Each(func(key string, value []byte) error {
		var t tableEntry
		if json.Unmarshal(value, &t) != nil || t.Host != here || !t.plausible() || len(s.times) >= maxTableEntries {
			gone[key] = nil
		} else {
			s.times[key] = t.Timing
		}
		return nil
	})
	if err == nil && len(gone) > 0 {
		err = table.Keep(gone)
	}
	if err != nil {
		return nil, fmt.Errorf("operator profiles: %w", err)
	}
	return s, nil
}

func digestOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// tableKey returns the key under which times are stored.
func tableKey(key string) string {
	if len(key) <= maxKeyLength {
		return key
	}
	return "sha256:" + digestOf(key)
}

// plausible reports whether a measurement can give this time.
func (t *Timing) plausible() bool {
	return t.Best >= 0 && t.Typical >= t.Best && t.Typical <= math.MaxFloat32 && t.Runs >= 1
}

// storeFile is the content of a file of operator profiles.
type storeFile struct {
	Format    string            `json:"format"`
	Host      profiler.Host     `json:"host"`
	Operators map[string]Timing `json:"operators"`
}

// Open returns a store of the times in a file. A missing file is an empty one. A file with times of another processor
// or of another version of the runtime is an error, as they do not hold here. An empty path keeps times in memory only.
func Open(path string, host profiler.Host) (*Store, error) {
	s := &Store{path: path, host: host, times: map[string]Timing{}}
	if path == "" {
		return s, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("operator profiles: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxStore+1))
	if err == nil && len(data) > maxStore {
		err = fmt.Errorf("larger than %d bytes", maxStore)
	}
	if err == nil {
		err = s.decode(data)
	}
	if err != nil {
		return nil, fmt.Errorf("operator profiles in %s: %w", path, err)
	}
	return s, nil
}

func (s *Store) decode(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var f storeFile
	if err := d.Decode(&f); err != nil {
		return err
	}
	if f.Format != Format {
		return fmt.Errorf("format is %q, want %q: move the file away, operators are measured anew", f.Format, Format)
	}
	if f.Host != s.host {
		return fmt.Errorf("measured on %s, this is %s: times of one do not hold on the other; use another file here",
			describe(f.Host), describe(s.host))
	}
	for key, t := range f.Operators {
		if !t.plausible() {
			return fmt.Errorf("operator %q: %+v cannot have been measured", key, t)
		}
		s.times[key] = t
	}
	return nil
}

func describe(h profiler.Host) string {
	return fmt.Sprintf("%q with %d cores, %s, ONNX Runtime %s", h.CPU, h.Cores, h.OS, h.ONNXRuntime)
}

// Get returns the time of a key, false when there is none.
func (s *Store) Get(key string) (Timing, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.times[tableKey(key)]
	return t, ok
}

// Put sets the time of a key. Save makes it durable.
func (s *Store) Put(key string, t Timing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times[tableKey(key)] = t
	if s.table != nil && len(s.times) <= maxTableEntries {
		s.unsaved[tableKey(key)] = t
	}
}

// Len returns the number of keys.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.times)
}

// Save replaces the file atomically, or writes to the table what was put since the last Save.
func (s *Store) Save() error {
	if s.table != nil {
		return s.saveTable()
	}
	if s.path == "" {
		return nil
	}
	s.mu.Lock()
	data, err := json.MarshalIndent(storeFile{Format, s.host, s.times}, "", " ")
	s.mu.Unlock()
	if err == nil {
		err = replace(s.path, data)
	}
	if err != nil {
		return fmt.Errorf("operator profiles: write %s: %w", s.path, err)
	}
	return nil
}

func (s *Store) saveTable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := make(map[string][]byte, len(s.unsaved))
	here := digestOf(describe(s.host))
	for key, t := range s.unsaved {
		b, err := json.Marshal(tableEntry{t, here})
		if err != nil {
			return fmt.Errorf("operator profiles: %q: %w", key, err)
		}
		entries[key] = b
	}
	if len(entries) == 0 {
		return nil
	}
	if err := s.table.Keep(entries); err != nil {
		return fmt.Errorf("operator profiles: %w", err)
	}
	clear(s.unsaved)
	return nil
}

func replace(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
