// Package tensor defines the payload that servers, backends and clients exchange: a named, typed, shaped block of
// little-endian bytes. The layout is that of the binary form of the Open Inference Protocol, so that most requests need
// no conversion.
package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
)

// DType is an element type of the Open Inference Protocol v2.
type DType uint8

// The element types of the protocol. Bytes elements have a length each; every other type has a fixed size.
const (
	Invalid DType = iota
	Bool
	Uint8
	Uint16
	Uint32
	Uint64
	Int8
	Int16
	Int32
	Int64
	FP16
	BF16
	FP32
	FP64
	Bytes
)

var names = [...]string{
	"INVALID", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "BF16", "FP32",
	"FP64", "BYTES",
}
var sizes = [...]int{0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 0}

// String returns the protocol's name, such as FP32.
func (d DType) String() string {
	if int(d) < len(names) {
		return names[d]
	}
	return names[Invalid]
}

// Whole reports whether elements are whole numbers or truth values.
func (d DType) Whole() bool {
	switch d {
	case Bool, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64:
		return true
	}
	return false
}

// Size returns the bytes of one element, or 0 for Bytes, whose elements vary.
func (d DType) Size() int {
	if int(d) < len(sizes) {
		return sizes[d]
	}
	return 0
}

// ParseDType returns the type with the protocol's name, or Invalid.
func ParseDType(s string) DType {
	for i := 1; i < len(names); i++ {
		if names[i] == s {
			return DType(i)
		}
	}
	return Invalid
}

// Spec describes an input or output of a model. A dimension of -1 is variable. The first dimension is the batch
// dimension if the model has one.
type Spec struct {
	Name  string
	DType DType
	Shape []int64
}

// Tensor is a named block of elements in row-major order.
//
// Data is little-endian. BOOL takes one byte an element. BYTES elements are each a 4-byte little-endian length and that
// many bytes.
type Tensor struct {
	Name  string
	DType DType
	Shape []int64
	Data  []byte
}

// TotalBytes is how many bytes the data of tensors have.
func TotalBytes(list []Tensor) (n int64) {
	for k := range list {
		n += int64(len(list[k].Data))
	}
	return n
}

// Elements returns the product of shape. It fails for a negative dimension and for a product above limit. A scalar,
// shape [], has one element; a zero dimension makes the product zero.
func Elements(shape []int64, limit int64) (int64, error) {
	n := int64(1)
	for i, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape[%d] is %d: a dimension cannot be negative", i, d)
		}
		if d == 0 {
			n = 0
		}
	}
	if n == 0 {
		return 0, nil
	}
	for _, d := range shape {
		if n > math.MaxInt64/d || n*d > limit {
			return 0, fmt.Errorf("shape %v causes total element count to exceed maximum size of %d", Dims(shape), limit)
		}
		n *= d
	}
	return n, nil
}

// Validate reports whether Data fits DType and Shape exactly; nil means that it does.
func (t *Tensor) Validate() error {
	if t.DType == Invalid || int(t.DType) >= len(names) {
		return fmt.Errorf("tensor %q: unknown datatype", t.Name)
	}
	n, err := Elements(t.Shape, math.MaxInt64)
	if err != nil {
		return fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	if t.DType != Bytes {
		size := int64(t.DType.Size())
		if n > math.MaxInt64/size || int64(len(t.Data)) != n*size {
			return fmt.Errorf("tensor %q: %d bytes of data, but shape %v of %s needs %d elements of %d bytes", t.Name,
				len(t.Data), Dims(t.Shape), t.DType, n, size)
		}
		if t.DType == Bool {
			return t.checkBools()
		}
		return nil
	}
	got, err := CountBytes(t.Data)
	if err != nil {
		return fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	if int64(got) != n {
		return fmt.Errorf("tensor %q: %d BYTES elements, but shape %v needs %d", t.Name, got, Dims(t.Shape), n)
	}
	return nil
}

// CountBytes returns the number of elements of a BYTES block.
func CountBytes(data []byte) (int, error) {
	n := 0
	for at := 0; at < len(data); n++ {
		next, err := nextBytes(data, at)
		if err != nil {
			return 0, err
		}
		at = next
	}
	return n, nil
}

// nextBytes returns the offset after the BYTES element that starts at at.
func nextBytes(data []byte, at int) (int, error) {
	if len(data)-at < 4 {
		return 0, fmt.Errorf("BYTES data ends inside a length at byte %d", at)
	}
	size := int64(binary.LittleEndian.Uint32(data[at:]))
	if size > int64(len(data)-at-4) {
		return 0, fmt.Errorf("BYTES element at byte %d claims %d bytes, %d are left", at, size, len(data)-at-4)
	}
	return at + 4 + int(size), nil
}

// AppendBytes appends one BYTES element to a block.
func AppendBytes(block, element []byte) []byte {
	block = binary.LittleEndian.AppendUint32(block, uint32(len(element)))
	return append(block, element...)
}

// checkBools returns an error for a byte that is neither 0 nor 1: runtimes take it for either.
func (t *Tensor) checkBools() error {
	for k, b := range t.Data {
		if b > 1 {
			return fmt.Errorf("tensor %q: element %d is the byte %d, a BOOL is 0 or 1", t.Name, k, b)
		}
	}
	return nil
}

// EachBytes calls f with every element of a BYTES block, in order. The slices alias data.
func EachBytes(data []byte, f func(element []byte)) error {
	for at := 0; at < len(data); {
		next, err := nextBytes(data, at)
		if err != nil {
			return err
		}
		f(data[at+4 : next])
		at = next
	}
	return nil
}

// Rows returns the tensor made of rows [from, to) of the first dimension. Data aliases t. BYTES rows are found by a
// scan.
func (t *Tensor) Rows(from, to int64) (Tensor, error) {
	if len(t.Shape) == 0 || from < 0 || to < from || to > t.Shape[0] {
		return Tensor{}, fmt.Errorf("tensor %q: rows [%d, %d) of shape %v do not exist", t.Name, from, to,
			Dims(t.Shape))
	}
	out := Tensor{Name: t.Name, DType: t.DType, Shape: append([]int64{to - from}, t.Shape[1:]...)}
	per, err := Elements(t.Shape[1:], math.MaxInt64)
	if err != nil {
		return Tensor{}, err
	}
	if t.DType != Bytes {
		row := per * int64(t.DType.Size())
		out.Data = t.Data[from*row : to*row]
		return out, nil
	}
	start, end, at := -1, len(t.Data), 0
	for i := int64(0); i <= to*per; i++ {
		if i == from*per {
			start = at
		}
		if i == to*per {
			end = at
			break
		}
		if at, err = nextBytes(t.Data, at); err != nil {
			return Tensor{}, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
	}
	out.Data = t.Data[start:end]
	return out, nil
}
