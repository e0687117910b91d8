package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// The layout of bbolt's files, format 2 (go.etcd.io/bbolt, internal/common): pages of one size; pages 0 and 1 are metas
// that are written in turn; the others are found from the root of the newer meta.
const (
	pageHead   = 16 // id, flags, count, overflow
	metaMagic  = 0xED0CDAED
	metaFormat = 2

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10

	branchElement = 16 // position, key size, page
	leafElement   = 16 // flags, position, key size, value size
	bucketFlag    = 0x01
	bucketHead    = 16 // root page, sequence

	noFreelist  = ^uint64(0)
	deepest     = 64      // levels of a tree of a file that fits on a disk
	largestPage = 1 << 16 // bytes

	unknownTable = "?" // a table within a table: there are none in files of this package
)

var errPages = errors.New("damaged pages")

// pageWalk goes through the pages of a bbolt file without trusting any of them. bbolt itself maps the file and follows
// what it reads: a damaged page ends the process. So does bbolt's own check, which panics on a goroutine of its own.
type pageWalk struct {
	r    io.ReaderAt
	size uint64 // of a page
	high uint64 // pages beyond it are not in use
	seen map[uint64]bool

	damage error // the first
	unread int   // parts that cannot be read: pages, with whatever is below them, and entries
	// entry takes the entries of tables; nil only looks for damage, and ends with the first.
	entry  func(table string, key, value []byte)
	budget int64 // bytes of entries that are still taken
}

// checkPages returns an error unless r is a bbolt file of so many bytes of which every page that is in use is whole and
// used once.
func checkPages(r io.ReaderAt, bytes int64) error {
	root, c, err := newestMeta(r, bytes)
	if err != nil {
		return err
	}
	c.tree(root, 0, "")
	return c.damage
}

// wrong notes damage.
func (c *pageWalk) wrong(format string, args ...any) {
	if c.damage == nil {
		c.damage = fmt.Errorf("%w: "+format, append([]any{errPages}, args...)...)
	}
}

// lost notes damage that leaves a part unread.
func (c *pageWalk) lost(format string, args ...any) {
	c.unread++
	c.wrong(format, args...)
}

// newestMeta reads the two metas. It returns the root of the newer whole one, and a walk from there, also where no more
// than the list of free pages is damaged.
func newestMeta(r io.ReaderAt, bytes int64) (root uint64, c *pageWalk, err error) {
	le := binary.LittleEndian
	var best, freelist uint64
	size := uint64(0)
	for _, at := range []uint64{0, 1 << 12, 1 << 9, 1 << 10, 1 << 11, 1 << 13, 1 << 14, 1 << 15, 1 << 16} {
		var b [pageHead + 64]byte // magic, format, page size, flags, root, sequence, freelist, high water, tx, checksum
		if _, err := r.ReadAt(b[:], int64(at)); err != nil {
			continue
		}
		m := b[pageHead:]
		h := fnv.New64a()
		_, _ = h.Write(m[:56])
		page := uint64(le.Uint32(m[8:]))
		if le.Uint32(m) != metaMagic || le.Uint32(m[4:]) != metaFormat || h.Sum64() != le.Uint64(m[56:]) ||
			page < 1<<9 || page > largestPage || at != 0 && at != page {
			continue
		}
		if tx := le.Uint64(m[48:]); c == nil || tx > best {
			best, size, root, freelist = tx, page, le.Uint64(m[16:]), le.Uint64(m[32:])
			c = &pageWalk{r: r, size: size, high: le.Uint64(m[40:]), seen: make(map[uint64]bool)}
		}
	}
	switch {
	case c == nil:
		return 0, nil, fmt.Errorf("%w: neither of the first two pages is whole", errPages)
	case c.high < 2 || c.high > uint64(bytes)/c.size:
		return 0, nil, fmt.Errorf("%w: the file has %d bytes, %d pages of %d are in use", errPages, bytes, c.high,
			c.size)
	case freelist != noFreelist:
		err = c.freelist(freelist)
	}
	return root, c, err
}

// page reads a page with its overflow. A page may be read once.
func (c *pageWalk) page(id uint64) (b []byte, flags uint16, count int, err error) {
	le := binary.LittleEndian
	var head [pageHead]byte
	if id < 2 || id >= c.high {
		return nil, 0, 0, fmt.Errorf("%w: page %d is not among the %d in use", errPages, id, c.high)
	}
	if _, err := c.r.ReadAt(head[:], int64(id*c.size)); err != nil {
		return nil, 0, 0, fmt.Errorf("%w: page %d: %w", errPages, id, err)
	}
	overflow := uint64(le.Uint32(head[12:]))
	if own := le.Uint64(head[:]); own != id || overflow >= c.high-id {
		return nil, 0, 0, fmt.Errorf("%w: page %d says that it is page %d and %d more", errPages, id, own, overflow)
	}
	for p := id; p <= id+overflow; p++ {
		if c.seen[p] {
			return nil, 0, 0, fmt.Errorf("%w: page %d is used twice", errPages, p)
		}
		c.seen[p] = true
	}
	b = make([]byte, (1+overflow)*c.size)
	if _, err := c.r.ReadAt(b, int64(id*c.size)); err != nil {
		return nil, 0, 0, fmt.Errorf("%w: page %d: %w", errPages, id, err)
	}
	return b, le.Uint16(head[8:]), int(le.Uint16(head[10:])), nil
}

func (c *pageWalk) freelist(id uint64) error {
	b, flags, n, err := c.page(id)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	ids := b[pageHead:]
	if n == 0xFFFF && len(ids) >= 8 { // then the first entry is the count
		if m := le.Uint64(ids); m <= uint64(len(ids)/8-1) {
			n = int(m)
		} else {
			n = -1
		}
		ids = ids[8:]
	}
	if flags != freelistPage || n < 0 || n > len(ids)/8 {
		return fmt.Errorf("%w: page %d is no list of free pages", errPages, id)
	}
	for k := range n {
		free := le.Uint64(ids[8*k:])
		if free < 2 || free >= c.high || c.seen[free] {
			return fmt.Errorf("%w: page %d cannot be free", errPages, free)
		}
		c.seen[free] = true
	}
	return nil
}

// tree goes through the page of a tree and everything below it: of the table with a name, or of the tree of tables for
// "".
func (c *pageWalk) tree(id uint64, depth int, table string) {
	b, flags, n, err := c.page(id)
	switch {
	case err != nil:
		c.unread++
		c.damage = cmp.Or(c.damage, err)
	case depth > deepest:
		c.lost("page %d is %d levels deep", id, depth)
	default:
		c.elements(b, flags, n, depth, table, fmt.Sprintf("page %d", id))
	}
}

// elements goes through the entries of a page, which may be one that lies within a value.
func (c *pageWalk) elements(b []byte, flags uint16, n, depth int, table, name string) {
	le := binary.LittleEndian
	if flags != branchPage && flags != leafPage || pageHead+n*leafElement > len(b) || flags == branchPage && n == 0 {
		c.lost("%s is no part of a tree", name)
		return
	}
	var before []byte
	for k := range n {
		if c.damage != nil && c.entry == nil {
			return
		}
		at := pageHead + k*leafElement
		e := b[at:]
		position, size, valueSize := e[4:], e[8:], uint64(le.Uint32(e[12:]))
		if flags == branchPage {
			position, size, valueSize = e, e[4:], 0
		}
		from := uint64(at) + uint64(le.Uint32(position))
		middle := from + uint64(le.Uint32(size))
		end := middle + valueSize
		whole := middle > from && end <= uint64(len(b))
		if whole {
			if k > 0 && bytes.Compare(before, b[from:middle]) >= 0 {
				c.wrong("%s has keys out of order", name)
			}
			before = b[from:middle]
		} else {
			c.wrong("%s has an entry without a key, or one that ends beyond it", name)
		}
		switch {
		case flags == branchPage:
			c.tree(le.Uint64(e[8:]), depth+1, table)
		case !whole:
			c.unread++
		case !c.leaf(b[from:middle], b[middle:end], le.Uint32(e)&bucketFlag != 0, depth, table, name):
			return
		}
	}
}

// leaf takes an entry, or goes through the table that it is. It returns false where there is no budget for it.
func (c *pageWalk) leaf(key, value []byte, nested bool, depth int, table, name string) bool {
	if c.entry != nil {
		if c.budget -= int64(len(key) + len(value)); c.budget < 0 {
			c.unread++
			return false
		}
	}
	switch {
	case nested && table == "":
		c.bucket(value, depth, string(key), name)
	case nested:
		c.bucket(value, depth, unknownTable, name)
	case c.entry != nil:
		c.entry(table, key, value)
	}
	return true
}

// bucket goes through a nested table: a tree of its own or, if it is small, a page within its entry.
func (c *pageWalk) bucket(value []byte, depth int, table, name string) {
	if len(value) < bucketHead || depth > deepest {
		c.lost("%s has a table that is cut short", name)
		return
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		c.tree(root, depth+1, table)
		return
	}
	inline := value[bucketHead:]
	if len(inline) < pageHead {
		c.lost("%s has a table that is cut short", name)
		return
	}
	le := binary.LittleEndian
	c.elements(inline, le.Uint16(inline[8:]), int(le.Uint16(inline[10:])), depth+1, table, name)
}
