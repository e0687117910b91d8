package store

import (
	"encoding/binary"
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
	// unread counts the parts that cannot be read: pages, with whatever is below them, and entries.
	unread int
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
		s.unread++ // the list of free pages: what is in use is found without it
		clear(c.seen)
	}
	budget := int64(mostSalvaged)
	s.page(c, root, 0, "", &budget)
	return s
}

// page salvages a page of a tree: of the table with a name, or of the tree of tables for "".
func (s *salvaged) page(c *pageChecker, id uint64, depth int, table string, budget *int64) {
	b, flags, n, err := c.page(id)
	if err != nil || depth > deepest {
		s.unread++
		return
	}
	s.elements(c, b, flags, n, depth, table, budget)
}

func (s *salvaged) elements(c *pageChecker, b []byte, flags uint16, n, depth int, table string, budget *int64) {
	le := binary.LittleEndian
	if flags != branchPage && flags != leafPage || pageHead+n*leafElement > len(b) {
		s.unread++
		return
	}
	for k := range n {
		at := pageHead + k*leafElement
		e := b[at:]
		if flags == branchPage {
			s.page(c, le.Uint64(e[8:]), depth+1, table, budget)
			continue
		}
		from := uint64(at) + uint64(le.Uint32(e[4:]))
		end := from + uint64(le.Uint32(e[8:]))
		last := end + uint64(le.Uint32(e[12:]))
		if end > uint64(len(b)) || last > uint64(len(b)) || end == from {
			s.unread++
			continue
		}
		key, value := b[from:end], b[end:last]
		if *budget -= int64(len(key) + len(value)); *budget < 0 {
			s.unread++
			return
		}
		switch nested := le.Uint32(e)&bucketFlag != 0; {
		case nested && table == "":
			s.table(c, key, value, depth, budget)
		case !nested && table != "":
			s.tables[table] = append(s.tables[table], entry{key, value})
			s.n++
		default:
			s.unread++
		}
	}
}

func (s *salvaged) table(c *pageChecker, name, value []byte, depth int, budget *int64) {
	if len(value) < bucketHead || depth > deepest {
		s.unread++
		return
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		s.page(c, root, depth+1, string(name), budget)
		return
	}
	inline := value[bucketHead:]
	if len(inline) < pageHead {
		s.unread++
		return
	}
	le := binary.LittleEndian
	s.elements(c, inline, le.Uint16(inline[8:]), int(le.Uint16(inline[10:])), depth+1, string(name), budget)
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
