package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// lockWait is the longest time to wait for a file that another process has locked.
const lockWait = 2 * time.Second

// schema is the version of the tables. A file of a later version is refused; one of version 0, from before versions,
// has the same tables.
const schema = 1

var (
	schemaTable = []byte("schema")
	schemaKey   = []byte("version")
)

// openTables opens or makes a bbolt file with its tables. own names the setting that each server needs a value of its
// own for, for the error when the file is in use. A damaged file is put aside, and a new one is made: lost then
// says so.
func openTables(path, own string, tables ...[]byte) (db *bbolt.DB, lost string, err error) {
	damage, err := damaged(path)
	if err != nil {
		return nil, "", fmt.Errorf("store: %s: %w", path, err)
	}
	if damage != nil {
		aside, err := putAside(path)
		if err != nil {
			return nil, "", fmt.Errorf("store: %s: %w, and cannot be put aside: %w", path, damage, err)
		}
		lost = fmt.Sprintf("%s: %v: what was in it is lost; the file is kept as %s, and a new one is made", path,
			damage, aside)
	}
	if db, err = openFile(path, own); err != nil {
		return nil, "", err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range append(tables, schemaTable) {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return checkSchema(tx)
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

// damaged says what is wrong with a file; nil for one that is whole, empty or not there.
func damaged(path string) (damage, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return nil, err
	}
	return checkPages(f, st.Size()), nil
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

// checkSchema refuses a file of a later version and notes this one.
func checkSchema(tx *bbolt.Tx) error {
	table, found := tx.Bucket(schemaTable), 0
	if b := table.Get(schemaKey); b != nil {
		if err := json.Unmarshal(b, &found); err != nil {
			return fmt.Errorf("its version %.20q cannot be read", b)
		}
	}
	if found > schema {
		return fmt.Errorf("it has version %d, this program knows %d: use the program that wrote it, or a later one",
			found, schema)
	}
	return table.Put(schemaKey, fmt.Append(nil, schema))
}
