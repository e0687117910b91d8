package store

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"go.etcd.io/bbolt"
)

// salvaged are the entries of a damaged file that can be read, by table.
type salvaged struct {
	tables map[string][]entry
	n      int
	unread int // parts that cannot be read
}

// entry is a key with its value.
type entry struct{ key, value []byte }

// mostSalvaged bounds the bytes that are salvaged, so that a file that repeats itself cannot fill the memory.
const mostSalvaged = 1 << 30

// salvage reads what can be read of a bbolt file of so many bytes: the entries of the tables of its newest whole meta,
// but for those on damaged pages, and below them. The values may be damaged, too; their readers check them.
func salvage(r io.ReaderAt, bytes int64) *salvaged {
	s := &salvaged{tables: make(map[string][]entry)}
	root, c, err := newestMeta(r, bytes)
	if c == nil {
		return s
	}
	if err != nil {
		c.unread++ // the list of free pages: what is in use is found without it
		clear(c.seen)
	}
	c.budget = mostSalvaged
	c.entry = func(table string, key, value []byte) {
		s.tables[table] = append(s.tables[table], entry{key, value})
		s.n++
	}
	c.tree(root, 0, "")
	s.unread = c.unread
	return s
}

// String says what was read and what was not.
func (s *salvaged) String() string {
	if s.n == 0 {
		return "nothing in it can be read"
	}
	return fmt.Sprintf("%d entries can be read and are kept, %d parts cannot and are lost", s.n, s.unread)
}

// version returns the version of the file, 0 if it cannot be read.
func (s *salvaged) version() (v int) {
	for _, e := range s.tables[string(schemaTable)] {
		if string(e.key) == string(schemaKey) && json.Unmarshal(e.value, &v) != nil {
			return 0
		}
	}
	return v
}

// filter drops the entries of a file that takes refuses.
func (s *salvaged) filter(takes func(table string, key, value []byte) bool) {
	s.n = 0
	for name, list := range s.tables {
		kept := slices.DeleteFunc(list, func(e entry) bool { return !takes(name, e.key, e.value) })
		s.tables[name] = kept
		s.n += len(kept)
	}
}

// write puts the entries into a new file.
func (s *salvaged) write(tx *bbolt.Tx, l layout) error {
	for _, name := range l.tables {
		table := tx.Bucket(name)
		for _, e := range s.tables[string(name)] {
			if len(e.key) > bbolt.MaxKeySize {
				continue
			}
			if err := table.Put(e.key, e.value); err != nil {
				return err
			}
		}
	}
	if l.derive == nil {
		return nil
	}
	return l.derive(tx)
}
