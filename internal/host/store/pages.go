package store

import (
	"bytes"
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
)

var errPages = errors.New("damaged pages")

// pageChecker walks the pages of a bbolt file without trusting any of them. bbolt itself maps the file and follows what
// it reads: a damaged page ends the process. So does bbolt's own check, which panics on a goroutine of its own.
type pageChecker struct {
	r    io.ReaderAt
	size uint64 // of a page
	high uint64 // pages beyond it are not in use
	seen map[uint64]bool
}

// checkPages returns an error unless r is a bbolt file of so many bytes of which every page that is in use is whole and
// used once.
func checkPages(r io.ReaderAt, bytes int64) error {
	root, c, err := newestMeta(r, bytes)
	if err != nil {
		return err
	}
	return c.tree(root, 0)
}

// newestMeta reads the two metas. It returns the root of the newer whole one.
func newestMeta(r io.ReaderAt, bytes int64) (root uint64, c *pageChecker, err error) {
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
			c = &pageChecker{r: r, size: size, high: le.Uint64(m[40:]), seen: make(map[uint64]bool)}
		}
	}
	switch {
	case c == nil:
		return 0, nil, fmt.Errorf("%w: neither of the first two pages is whole", errPages)
	case c.high < 2 || c.high > uint64(bytes)/c.size:
		return 0, nil, fmt.Errorf("%w: the file has %d bytes, %d pages of %d are in use", errPages, bytes, c.high,
			c.size)
	case freelist != noFreelist:
		if err := c.freelist(freelist); err != nil {
			return 0, nil, err
		}
	}
	return root, c, nil
}

// page reads a page with its overflow. A page may be read once.
func (c *pageChecker) page(id uint64) (b []byte, flags uint16, count int, err error) {
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

func (c *pageChecker) freelist(id uint64) error {
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

// tree checks the page of a tree and everything below it.
func (c *pageChecker) tree(id uint64, depth int) error {
	b, flags, n, err := c.page(id)
	if err != nil {
		return err
	}
	if depth > deepest {
		return fmt.Errorf("%w: page %d is %d levels deep", errPages, id, depth)
	}
	return c.elements(b, flags, n, depth, fmt.Sprintf("page %d", id))
}

// elements checks the entries of a page, which may be one that lies within a value.
func (c *pageChecker) elements(b []byte, flags uint16, n, depth int, name string) error {
	le := binary.LittleEndian
	if flags != branchPage && flags != leafPage || pageHead+n*leafElement > len(b) || flags == branchPage && n == 0 {
		return fmt.Errorf("%w: %s is no part of a tree", errPages, name)
	}
	var before []byte
	for k := range n {
		at := pageHead + k*leafElement
		e := b[at:]
		position, size := e[4:], e[8:]
		if flags == branchPage {
			position, size = e, e[4:]
		}
		from := uint64(at) + uint64(le.Uint32(position))
		end := from + uint64(le.Uint32(size))
		if end > uint64(len(b)) {
			return fmt.Errorf("%w: %s has a key that ends beyond it", errPages, name)
		}
		key := b[from:end]
		if len(key) == 0 || k > 0 && bytes.Compare(before, key) >= 0 {
			return fmt.Errorf("%w: %s has keys out of order", errPages, name)
		}
		before = key
		if flags == branchPage {
			if err := c.tree(le.Uint64(e[8:]), depth+1); err != nil {
				return err
			}
			continue
		}
		from, end = end, end+uint64(le.Uint32(e[12:]))
		if end > uint64(len(b)) {
			return fmt.Errorf("%w: %s has a value that ends beyond it", errPages, name)
		}
		if le.Uint32(e)&bucketFlag == 0 {
			continue
		}
		if err := c.bucket(b[from:end], depth, name); err != nil {
			return err
		}
	}
	return nil
}

// bucket checks a nested table: a tree of its own or, if it is small, a page within its entry.
func (c *pageChecker) bucket(value []byte, depth int, name string) error {
	if len(value) < bucketHead || depth > deepest {
		return fmt.Errorf("%w: %s has a table that is cut short", errPages, name)
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return c.tree(root, depth+1)
	}
	inline := value[bucketHead:]
	if len(inline) < pageHead {
		return fmt.Errorf("%w: %s has a table that is cut short", errPages, name)
	}
	le := binary.LittleEndian
	return c.elements(inline, le.Uint16(inline[8:]), int(le.Uint16(inline[10:])), depth+1, name)
}
