package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// lockWait is the longest time to wait for a file that another process has locked.
const lockWait = 2 * time.Second

// schema is the version of the tables. A file of a later version is refused, one of an earlier version is migrated.
const schema = 1

var (
	schemaTable = []byte("schema")
	schemaKey   = []byte("version")
)

// layout is what a file holds.
type layout struct {
	tables [][]byte
	// own names the setting that each server needs a value of its own for, for the error when the file is in use.
	own string
	// takes reports whether a salvaged entry of a table can be taken over into a new file, and is not derived from
	// others.
	takes func(table string, key, value []byte) bool
	// derive makes what follows from the salvaged entries; nil for nothing.
	derive func(*bbolt.Tx) error
}

// openTables opens or makes a bbolt file with its tables. A damaged file is put aside, and a new one is made with what
// can be read of it: lost then says so.
func openTables(path string, l layout) (db *bbolt.DB, lost string, err error) {
	damage, left, err := damaged(path)
	if err != nil {
		return nil, "", fmt.Errorf("store: %s: %w", path, err)
	}
	if damage != nil {
		if v := left.version(); v > schema {
			return nil, "", fmt.Errorf("store: %s: %w, and it has version %d, this program knows %d: use the "+
				"program that wrote it, or a later one", path, damage, v, schema)
		}
		aside, err := putAside(path)
		if err != nil {
			return nil, "", fmt.Errorf("store: %s: %w, and cannot be put aside: %w", path, damage, err)
		}
		left.filter(l.takes)
		lost = fmt.Sprintf("%s: %v: %v; the file is kept as %s, and a new one is made", path, damage, left, aside)
	}
	if db, err = openFile(path, l.own); err != nil {
		return nil, "", err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range append(slices.Clone(l.tables), schemaTable) {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		if left != nil {
			if err := left.write(tx, l); err != nil {
				return err
			}
		}
		return migrate(tx)
	})
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("store: %s: %w", path, err), db.Close())
	}
	return db, lost, nil
}

func openFile(path, own string) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("store: %s is in use by another process: one server has %s for itself", path, own)
	}
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", path, err)
	}
	return db, nil
}

// damaged says what is wrong with a file, and what is left in it; nil for one that is whole, empty or not there.
func damaged(path string) (damage error, left *salvaged, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return nil, nil, err
	}
	if damage = checkPages(f, st.Size()); damage != nil {
		left = salvage(f, st.Size())
	}
	return damage, left, nil
}

// putAside renames a file to a name that is free.
func putAside(path string) (aside string, err error) {
	for k := 1; ; k++ {
		aside = fmt.Sprintf("%s.damaged-%d", path, k)
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			return aside, os.Rename(path, aside)
		} else if err != nil {
			return "", err
		}
	}
}

// migrations change the tables of a file of each version into those of the next.
var migrations = [schema]func(*bbolt.Tx) error{
	func(*bbolt.Tx) error { return nil }, // from 0, before versions: the same tables
}

// migrate refuses a file of a later version, brings one of an earlier version up to this one, and notes that.
func migrate(tx *bbolt.Tx) error {
	table, found := tx.Bucket(schemaTable), 0
	if b := table.Get(schemaKey); b != nil {
		if err := json.Unmarshal(b, &found); err != nil || found < 0 {
			return fmt.Errorf("its version %.20q cannot be read", b)
		}
	}
	if found > schema {
		return fmt.Errorf("it has version %d, this program knows %d: use the program that wrote it, or a later one",
			found, schema)
	}
	for ; found < schema; found++ {
		if err := migrations[found](tx); err != nil {
			return fmt.Errorf("from version %d to %d: %w", found, found+1, err)
		}
	}
	return table.Put(schemaKey, fmt.Append(nil, schema))
}
