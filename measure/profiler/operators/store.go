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

	"github.com/sluice-serving/sluice/measure/profiler"
)

// Format is the "format" of a file of operator profiles, the name and version of the layout.
const Format = "sluice-operators/1"

// maxStore bounds what Open reads.
const maxStore = 64 << 20

// Store keeps what operators take, on one host. It is safe for concurrent use.
type Store struct {
	mu      sync.Mutex
	path    string // empty keeps nothing beyond the process, where shelf is nil, too
	table   Table
	unsaved map[string]Timing // that the shelf has not got yet
	host    profiler.Host
	times   map[string]Timing
}

// Table is a table in which a Store keeps its times, instead of a file of its own.
type Table interface {
	// Each calls do with all entries, until it fails.
	Each(do func(key string, value []byte) error) error
	// Keep writes entries, all or none of them; a nil value removes its key.
	Keep(entries map[string][]byte) error
}

// tableEntry is a time as it lies on a shelf.
type tableEntry struct {
	Timing
	Host string `json:"host"` // a digest
}

// Bounds on what lies on a shelf.
const (
	maxTableEntries = 200_000
	maxKeyLength    = 1 << 10 // bytes; longer ones are known by their sum
)

// OpenTable reads the operators of a shelf. Times of another host, and what cannot have been measured, are removed:
// they are measured anew when they are asked for.
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

// tableKey is what a key is known by.
func tableKey(key string) string {
	if len(key) <= maxKeyLength {
		return key
	}
	return "sha256:" + digestOf(key)
}

// plausible tells whether a time can have been measured.
func (t *Timing) plausible() bool {
	return t.Best >= 0 && t.Typical >= t.Best && t.Typical <= math.MaxFloat32 && t.Runs >= 1
}

// storeFile is a store as it lies in a file.
type storeFile struct {
	Format    string            `json:"format"`
	Host      profiler.Host     `json:"host"`
	Operators map[string]Timing `json:"operators"`
}

// Open reads the operators of a file; one that is not there yet has none. Times of another processor or another version
// of the runtime are refused: they say nothing here. An empty path keeps operators only as long as the store is used.
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

// Get returns what is known of a key.
func (s *Store) Get(key string) (Timing, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.times[tableKey(key)]
	return t, ok
}

// Put notes a time; Save keeps it.
func (s *Store) Put(key string, t Timing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times[tableKey(key)] = t
	if s.table != nil && len(s.times) <= maxTableEntries {
		s.unsaved[tableKey(key)] = t
	}
}

// Len is the number of keys.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.times)
}

// Save writes the file so that a reader sees the old one or the new one, never half of either; to a shelf, what was put
// since the last time.
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
