package onnxmodel

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// window reads the fields of a protobuf message in a file, without reading the contents of fields that it skips.
type window struct {
	src   io.ReaderAt
	size  int64
	buf   [64 << 10]byte
	start int64
	n     int
}

// field is one field: the offsets of its contents, or for numbers its value.
type field struct {
	num        protowire.Number
	typ        protowire.Type
	value      uint64
	start, end int64
}

func (f field) is(num protowire.Number, typ protowire.Type) bool { return f.num == num && f.typ == typ }

// header is at least the bytes of the longest tag and the longest number after it.
const header = 20

// peek returns up to header bytes at off. It does not read past end.
func (w *window) peek(off, end int64) ([]byte, error) {
	want := min(int64(header), end-off)
	if off < w.start || off+want > w.start+int64(w.n) {
		n, err := w.src.ReadAt(w.buf[:min(int64(len(w.buf)), w.size-off)], off)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		w.start, w.n = off, n
		if int64(n) < want {
			return nil, io.ErrUnexpectedEOF
		}
	}
	at := off - w.start
	return w.buf[at : at+want], nil
}

// fields calls visit for each field between two offsets.
func (w *window) fields(off, end int64, visit func(field) error) error {
	for off < end {
		b, err := w.peek(off, end)
		if err != nil {
			return err
		}
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return malformed(off, n)
		}
		f := field{num: num, typ: typ}
		b = b[n:]
		at := off + int64(n)
		switch typ {
		case protowire.VarintType:
			v, m := protowire.ConsumeVarint(b)
			if m < 0 {
				return malformed(off, m)
			}
			f.value, off = v, at+int64(m)
		case protowire.BytesType:
			v, m := protowire.ConsumeVarint(b)
			if m < 0 {
				return malformed(off, m)
			}
			f.start = at + int64(m)
			if v > uint64(end-f.start) {
				return fmt.Errorf("malformed at byte %d: field %d claims %d bytes, %d are left", off, num, v,
					end-f.start)
			}
			f.end = f.start + int64(v)
			off = f.end
		case protowire.Fixed32Type:
			off = at + 4
		case protowire.Fixed64Type:
			off = at + 8
		default:
			return fmt.Errorf("malformed at byte %d: field %d has wire type %d, which ONNX does not use", off, num, typ)
		}
		if off > end {
			return fmt.Errorf("malformed at byte %d: cut short", end)
		}
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

func malformed(off int64, code int) error {
	return fmt.Errorf("malformed at byte %d: %w", off, protowire.ParseError(code))
}
