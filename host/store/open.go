package store

import (
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// lockWait is the longest time to wait for a file that another process has locked.
const lockWait = 2 * time.Second

// openTables opens or makes a bbolt file with its tables. own names the setting that each server needs a value of its
// own for, for the error when the file is in use.
func openTables(path, own string, tables ...[]byte) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("store: %s is in use by another process: one server has %s for itself", path, own)
	}
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range tables {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: %s: %w", path, err), db.Close())
	}
	return db, nil
}
