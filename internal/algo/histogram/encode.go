package histogram

import (
	"encoding/binary"
	"errors"
)

// AppendEncoded appends the content of the histogram at a time to b and returns the extended slice. Slices are encoded
// by age, so that the encoding does not depend on where time begins. MergeEncoded reads it.
func (s *Sliding) AppendEncoded(b []byte, at int64) []byte {
	s.Advance(at)
	used := 0
	for _, part := range s.slices {
		if !empty(part) {
			used++
		}
	}
	b = binary.AppendUvarint(b, uint64(used))
	for age := range int64(len(s.slices)) {
		part := s.sliceCounts(s.newest - age)
		if empty(part) {
			continue
		}
		bins := 0
		for _, c := range part {
			if c > 0 {
				bins++
			}
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(age)), uint64(bins))
		for bin, c := range part {
			if c > 0 {
				b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(bin)), uint64(c))
			}
		}
	}
	return b
}

var errEncoded = errors.New("histogram: what is to be taken up is cut off, or of a histogram of another size")

// MergeEncoded adds the content that AppendEncoded wrote of a histogram with as many bins and slices. older is the time
// that has passed since it was written; at is now. It returns the bytes of b after the encoding. It fails when the
// sizes differ or bytes are missing, and then leaves the histogram unchanged.
func (s *Sliding) MergeEncoded(b []byte, at, older int64) ([]byte, error) {
	s.Advance(at)
	next := func() (n int64, ok bool) {
		x, size := binary.Uvarint(b)
		if size <= 0 || x > 1<<31-1 {
			return 0, false
		}
		b = b[size:]
		return int64(x), true
	}
	type entry struct{ age, bin, count int64 }
	var all []entry
	used, ok := next()
	for range used {
		var age, bins int64
		if age, ok = next(); ok {
			bins, ok = next()
		}
		for n := int64(0); ok && n < bins; n++ {
			e := entry{age: age}
			if e.bin, ok = next(); ok {
				e.count, ok = next()
			}
			if ok = ok && e.bin <= int64(len(s.counts)); ok {
				all = append(all, e)
			}
		}
		if ok = ok && age < int64(len(s.slices)); !ok {
			break
		}
	}
	if !ok {
		return nil, errEncoded
	}
	for _, e := range all {
		if age := e.age + older/s.slice; age < int64(len(s.slices)) {
			s.add(s.newest-age, e.bin, e.count)
		}
	}
	return b, nil
}

func empty(part []int32) bool {
	for _, c := range part {
		if c > 0 {
			return false
		}
	}
	return true
}
