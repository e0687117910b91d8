package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// Function is the record of a deployed function. It is written in one transaction.
type Function struct {
	Name     string    `json:"name"`
	Version  int       `json:"version"` // counts the deployments under this name, from 1
	Deployed time.Time `json:"deployed"`
	Model    Model     `json:"model"`
	// Python says that the model is a file of Python, and Class which of its classes; "" is its only one.
	Python bool   `json:"python,omitempty"`
	Class  string `json:"class,omitempty"`

	Latency    time.Duration     `json:"latency_ns"`
	Percentile float64           `json:"percentile"`
	MaxBatch   int               `json:"max_batch,omitempty"`    // 0 leaves it to the model
	Memory     int64             `json:"memory_bytes,omitempty"` // 0 takes the model's size
	Least      int               `json:"min_instances,omitempty"`
	Most       int               `json:"max_instances,omitempty"`
	ColdWait   time.Duration     `json:"cold_wait_ns,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`

	// Profile is the measured or predicted latencies of the model, in the format of profile files; null if they are
	// learned.
	Profile json.RawMessage `json:"profile,omitempty"`
	// Predicted says that Profile was predicted. Off is its error as a share of the latencies measured later; null
	// before they are.
	Predicted bool     `json:"predicted,omitempty"`
	Off       *float64 `json:"prediction_error,omitempty"`
}

// Model identifies a model file by its content.
type Model struct {
	SHA256 string `json:"sha256"` // in hexadecimal
	Bytes  int64  `json:"bytes"`
}

// Functions is the registry of a server: a bbolt file and model files beside it. It is safe for concurrent use by one
// process; a second one is refused. Data that a method has written survives a kill of the process at any later instant.
// Data that is being written during a kill is there completely or not at all.
type Functions struct {
	dir  string
	db   *bbolt.DB
	lost string
}

// Lost says what was lost because the registry was damaged; "" if nothing was.
func (f *Functions) Lost() string { return f.lost }

// The tables of the registry.
var (
	functionTable = []byte("functions")
	versionTable  = []byte("versions") // the last version of every name, deleted ones included
	modelTable    = []byte("models")   // the checksums of the model files that this registry has written
)

// Tables for data of other packages. These define their own keys and formats.
const (
	OperatorTable = "operators" // latencies of single operators
	IdleTable     = "idle"      // how long functions stay idle
)

const (
	functionsFile = "functions.db"
	modelsFolder  = "models"
)

// OpenFunctions opens or makes the registry in a folder. It removes interrupted uploads, and model files that it has
// written itself and no function names any more. A damaged registry is put aside; see Lost.
func OpenFunctions(dir string) (*Functions, error) {
	if err := os.MkdirAll(filepath.Join(dir, modelsFolder), 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	db, lost, err := openTables(filepath.Join(dir, functionsFile), layout{
		own:    "a store",
		tables: [][]byte{functionTable, versionTable, modelTable, []byte(OperatorTable), []byte(IdleTable)},
		takes: func(table string, key, value []byte) bool {
			switch table {
			case string(functionTable):
				var x Function
				return json.Unmarshal(value, &x) == nil && x.Name == string(key)
			case string(modelTable):
				return false // model files of functions that are lost must not be removed
			case string(versionTable):
				return json.Unmarshal(value, new(int)) == nil
			}
			return table != string(schemaTable) // readers of the others leave out what they cannot read
		},
		derive: versionFunctions,
	})
	if err != nil {
		return nil, err
	}
	f := &Functions{dir: dir, db: db, lost: lost}
	if err := errors.Join(syncFolder(dir), f.removeUnused()); err != nil {
		return nil, errors.Join(fmt.Errorf("store: %s: %w", dir, err), db.Close())
	}
	return f, nil
}

// versionFunctions makes the last version of every name at least that of its function.
func versionFunctions(tx *bbolt.Tx) error {
	return tx.Bucket(functionTable).ForEach(func(name, b []byte) error {
		var x Function
		if err := json.Unmarshal(b, &x); err != nil || x.Version <= lastVersion(tx, x.Name) {
			return err
		}
		return tx.Bucket(versionTable).Put(name, fmt.Append(nil, x.Version))
	})
}

// Close releases the registry.
func (f *Functions) Close() error { return f.db.Close() }

// List returns all functions, by name.
func (f *Functions) List() (out []Function, err error) {
	err = f.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(functionTable).ForEach(func(name, b []byte) error {
			var x Function
			if err := json.Unmarshal(b, &x); err != nil {
				return fmt.Errorf("store: function %q: %w", name, err)
			}
			out = append(out, x)
			return nil
		})
	})
	return out, err
}

// Next returns the version of the next deployment under a name.
func (f *Functions) Next(name string) (version int, err error) {
	err = f.db.View(func(tx *bbolt.Tx) error {
		version = lastVersion(tx, name) + 1
		return nil
	})
	return version, err
}

func lastVersion(tx *bbolt.Tx, name string) (n int) {
	_ = json.Unmarshal(tx.Bucket(versionTable).Get([]byte(name)), &n)
	return n
}

// Put stores a function. It replaces the one of the same name. Its model must be stored, and its version must be that
// of Next.
func (f *Functions) Put(x Function) error {
	if st, err := os.Stat(f.ModelPath(x.Model.SHA256)); err != nil || st.Size() != x.Model.Bytes {
		return fmt.Errorf("store: function %q: the model %.12s is not in the store in whole", x.Name, x.Model.SHA256)
	}
	b, err := json.Marshal(x)
	if err != nil {
		return fmt.Errorf("store: function %q: %w", x.Name, err)
	}
	return f.db.Update(func(tx *bbolt.Tx) error {
		if n := lastVersion(tx, x.Name); x.Version != n+1 {
			return fmt.Errorf("store: function %q: version %d follows %d", x.Name, x.Version, n)
		}
		return errors.Join(tx.Bucket(functionTable).Put([]byte(x.Name), b), tx.Bucket(versionTable).Put([]byte(x.Name),
			fmt.Append(nil, x.Version)))
	})
}

// Amend replaces the record of the same version of a function. there is false when that version is not the stored one
// any more.
func (f *Functions) Amend(x Function) (there bool, err error) {
	b, err := json.Marshal(x)
	if err != nil {
		return false, fmt.Errorf("store: function %q: %w", x.Name, err)
	}
	err = f.db.Update(func(tx *bbolt.Tx) error {
		var was Function
		old := tx.Bucket(functionTable).Get([]byte(x.Name))
		if old == nil || json.Unmarshal(old, &was) != nil || was.Version != x.Version {
			return nil //nolint:nilerr // a record that cannot be read is another version
		}
		there = true
		return tx.Bucket(functionTable).Put([]byte(x.Name), b)
	})
	return there, err
}

// Delete removes a function. Its model file stays until the next start, because instances may still read it.
func (f *Functions) Delete(name string) error {
	return f.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(functionTable).Delete([]byte(name)) })
}

// Get returns the value of a key in one of the tables OperatorTable and IdleTable; nil when there is none.
func (f *Functions) Get(table, key string) (value []byte, err error) {
	err = f.inTable(f.db.View, table, func(b *bbolt.Bucket) error {
		value = bytes.Clone(b.Get([]byte(key)))
		return nil
	})
	return value, err
}

// Keep writes entries of a table, all or none of them. A nil value removes its key.
func (f *Functions) Keep(table string, entries map[string][]byte) error {
	return f.inTable(f.db.Update, table, func(b *bbolt.Bucket) error {
		for key, value := range entries {
			var err error
			if value == nil {
				err = b.Delete([]byte(key))
			} else {
				err = b.Put([]byte(key), value)
			}
			if err != nil {
				return fmt.Errorf("store: %s %.100q: %w", table, key, err)
			}
		}
		return nil
	})
}

// Each calls do with all entries of a table in the order of their keys, until do fails, and returns its error. value
// must not be kept.
func (f *Functions) Each(table string, do func(key string, value []byte) error) error {
	return f.inTable(f.db.View, table, func(b *bbolt.Bucket) error {
		return b.ForEach(func(k, v []byte) error { return do(string(k), v) })
	})
}

// Table is one of the tables OperatorTable and IdleTable.
type Table struct {
	f    *Functions
	name string
}

// Table returns a table by its name, OperatorTable or IdleTable.
func (f *Functions) Table(name string) Table { return Table{f, name} }

// Each calls do with all entries, as Functions.Each does.
func (t Table) Each(do func(key string, value []byte) error) error { return t.f.Each(t.name, do) }

// Keep writes entries, as Functions.Keep does.
func (t Table) Keep(entries map[string][]byte) error { return t.f.Keep(t.name, entries) }

func (f *Functions) inTable(run func(func(*bbolt.Tx) error) error, table string, do func(*bbolt.Bucket) error) error {
	if table != OperatorTable && table != IdleTable {
		return fmt.Errorf("store: there is no table %q", table)
	}
	return run(func(tx *bbolt.Tx) error { return do(tx.Bucket([]byte(table))) })
}
