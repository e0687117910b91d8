package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/sluice-serving/sluice/dataplane"
)

// States keeps the states of streams at stateful stages, in a bbolt file. It is safe for concurrent use by one process;
// a second one is refused. States that Keep has written survive a kill of the process at any later instant. All states
// together take a bounded number of bytes: those that were written longest ago are removed.
type States struct {
	db    *bbolt.DB
	limit int64
	lost  string
}

// Lost says what was lost because the file was damaged; "" if nothing was.
func (s *States) Lost() string { return s.lost }

var _ dataplane.StateStore = (*States)(nil)

// The tables of the file.
var (
	stateTable = []byte("states") // by app, stage and stream: the number of the write, and the state
	orderTable = []byte("order")  // by number of the write: the key of the state
	sizeTable  = []byte("size")   // under its own name: the bytes of all states
)

const statesFile = "states.db"

// stateCost is the bytes that a state counts besides its key and its data.
const stateCost = 64

// leastFile is the limit below which the size of the file is not looked at: an empty one has some pages.
const leastFile = 1 << 20

// OpenStates opens or makes the states in a folder. They take at most limit bytes.
func OpenStates(dir string, limit int64) (*States, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	path := filepath.Join(dir, statesFile)
	db, lost, err := openTables(path, layout{
		own: "its states", tables: [][]byte{stateTable, orderTable, sizeTable}, derive: orderStates,
		takes: func(table string, _, value []byte) bool {
			return table == string(stateTable) && len(value) >= 8
		},
	})
	if err != nil {
		return nil, err
	}
	s := &States{db: db, limit: limit, lost: lost}
	err = db.Update(func(tx *bbolt.Tx) error { return s.shrink(tx, size(tx)) }) // the limit may have been larger
	if err == nil {
		err = syncFolder(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: %s: %w", path, err), db.Close())
	}
	return s, nil
}

// orderStates makes the other tables from that of states.
func orderStates(tx *bbolt.Tx) error {
	table, order, total, last := tx.Bucket(stateTable), tx.Bucket(orderTable), int64(0), uint64(0)
	err := table.ForEach(func(key, value []byte) error {
		last = max(last, binary.BigEndian.Uint64(value))
		total += cost(key, len(value)-8)
		return order.Put(value[:8], key)
	})
	return errors.Join(err, table.SetSequence(last),
		tx.Bucket(sizeTable).Put(sizeTable, binary.BigEndian.AppendUint64(nil, uint64(total))))
}

// Close releases the file.
func (s *States) Close() error { return s.db.Close() }

// Get implements dataplane.StateStore.
func (s *States) Get(k dataplane.StateKey) (state []byte, err error) {
	key, err := keyOf(k)
	if err != nil {
		return nil, err
	}
	err = s.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(stateTable).Get(key)
		if b != nil && len(b) < 8 {
			return fmt.Errorf("store: the state of stream %.64q at stage %q is cut short", k.Stream, k.Stage)
		}
		if b != nil {
			state = append([]byte{}, b[8:]...) // not nil, even if empty
		}
		return nil
	})
	return state, err
}

// Keep implements dataplane.StateStore.
func (s *States) Keep(states map[dataplane.StateKey][]byte) error {
	type entry struct{ key, state []byte }
	entries := make([]entry, 0, len(states))
	for k, state := range states {
		key, err := keyOf(k)
		if err != nil {
			return err
		}
		entries = append(entries, entry{key, state})
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	return s.db.Update(func(tx *bbolt.Tx) error {
		table, order, total := tx.Bucket(stateTable), tx.Bucket(orderTable), size(tx)
		for _, e := range entries {
			if old := table.Get(e.key); len(old) >= 8 {
				total -= cost(e.key, len(old)-8)
				if err := order.Delete(old[:8]); err != nil {
					return err
				}
			}
			if e.state == nil {
				if err := table.Delete(e.key); err != nil {
					return err
				}
				continue
			}
			n, err := table.NextSequence()
			if err != nil {
				return err
			}
			number := binary.BigEndian.AppendUint64(nil, n)
			if err := errors.Join(table.Put(e.key, slices.Concat(number, e.state)), order.Put(number, e.key)); err !=
				nil {
				return fmt.Errorf("store: state %.100q: %w", e.key, err)
			}
			total += cost(e.key, len(e.state))
		}
		return s.shrink(tx, total)
	})
}

// shrink removes the oldest states while all together take too many bytes, and stores their size.
//
// A file does not shrink, and holds pages that are partly filled. Once it is near the limit and has few free pages,
// states make way until some are free.
func (s *States) shrink(tx *bbolt.Tx, total int64) error {
	table, order := tx.Bucket(stateTable), tx.Bucket(orderTable)
	most := s.limit
	free := int64(s.db.Stats().FreePageN) * int64(s.db.Info().PageSize)
	if s.limit >= leastFile && tx.Size() > s.limit/4*3 && free < s.limit/4 {
		most = min(most, total-total/10)
	}
	for total > most {
		number, key := order.Cursor().First()
		if number == nil {
			break
		}
		total -= cost(key, max(len(table.Get(key))-8, 0))
		if err := table.Delete(key); err != nil {
			return err
		}
		if err := order.Delete(number); err != nil {
			return err
		}
	}
	return tx.Bucket(sizeTable).Put(sizeTable, binary.BigEndian.AppendUint64(nil, uint64(max(total, 0))))
}

func cost(key []byte, state int) int64 { return int64(len(key) + state + stateCost) }

func size(tx *bbolt.Tx) int64 {
	if b := tx.Bucket(sizeTable).Get(sizeTable); len(b) == 8 {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// keyOf encodes a key. Different keys have different encodings, because only the last field, the stream's name, may
// contain any byte.
func keyOf(k dataplane.StateKey) ([]byte, error) {
	if strings.ContainsRune(k.App+k.Stage, 0) || k.Stream == "" {
		return nil, fmt.Errorf("store: app %q, stage %q, stream %.64q: names of apps and stages hold no NUL, and a "+
			"stream has a name", k.App, k.Stage, k.Stream)
	}
	return []byte(k.App + "\x00" + k.Stage + "\x00" + k.Stream), nil
}
