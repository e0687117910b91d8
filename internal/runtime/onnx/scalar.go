//go:build cgo

package onnx

/*
#include <stddef.h>
#include <stdint.h>

// Places in the runtime's table of functions, as in strings.go; all of them are there from its first version on.
enum {
	create_tensor = 48, create_tensor_with_data = 49, create_cpu_memory_info = 69, default_allocator = 78,
	release_memory_info = 94, release_value = 96
};

// made is a value of the runtime, or the status of the failure to make it.
typedef struct { void *value, *status; } made;

// tensor_over makes a tensor of the elements that lie at data.
static made tensor_over(const void **api, void *data, size_t size, const int64_t *shape, size_t rank, int type) {
	made m = {NULL, NULL};
	void *info = NULL;
	m.status = ((void *(*)(int, int, void **))api[create_cpu_memory_info])(0, 0, &info);
	if (m.status != NULL) return m;
	m.status = ((void *(*)(void *, void *, size_t, const int64_t *, size_t, int, void **))api[create_tensor_with_data])(
		info, data, size, shape, rank, type, &m.value);
	((void (*)(void *))api[release_memory_info])(info);
	return m;
}

// scalar_of makes a tensor without dimensions in the runtime's memory, for a string.
static made scalar_of(const void **api, int type) {
	made m = {NULL, NULL};
	void *allocator = NULL;
	m.status = ((void *(*)(void **))api[default_allocator])(&allocator);
	if (m.status != NULL) return m;
	int64_t none = 0;
	m.status = ((void *(*)(void *, const int64_t *, size_t, int, void **))api[create_tensor])(allocator, &none, 0, type,
		&m.value);
	return m;
}

static void release_made(const void **api, void *value) { ((void (*)(void *))api[release_value])(value); }
*/
import "C"

import (
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"
)

// shaped is a tensor that the binding refuses to make although models may have it: without dimensions, or without
// elements of a type that Go does not have.
type shaped struct {
	ort.Value                // one element of the same type, with the shape [1]
	value     unsafe.Pointer // the runtime's value; the one field of ort.ValueInternalData
	shape     ort.Shape
	api       *unsafe.Pointer
}

// scalarOver makes a scalar of an element in pinned Go memory.
func scalarOver(data []byte, d ort.TensorElementDataType) (ort.Value, error) {
	return tensorOver(data, len(data), []int64{0}, 0, d)
}

// emptyOf makes a tensor without elements. Data is one element in pinned Go memory, which is not looked at.
func emptyOf(data []byte, shape []int64, d ort.TensorElementDataType) (ort.Value, error) {
	return tensorOver(data, 0, shape, len(shape), d)
}

func tensorOver(data []byte, size int, shape []int64, rank int, d ort.TensorElementDataType) (ort.Value, error) {
	api, err := cAPI()
	if err != nil {
		return nil, err
	}
	like, err := ort.NewCustomDataTensor(ort.Shape{1}, data, d)
	if err != nil {
		return nil, err
	}
	return newShaped(api, like, shape[:rank], C.tensor_over(api, unsafe.Pointer(&data[0]), C.size_t(size),
		(*C.int64_t)(unsafe.Pointer(&shape[0])), C.size_t(rank), C.int(d)))
}

// scalarText makes a scalar of a string, which is to be filled in.
func scalarText() (ort.Value, error) {
	api, err := cAPI()
	if err != nil {
		return nil, err
	}
	like, err := ort.NewStringTensor(ort.Shape{1})
	if err != nil {
		return nil, err
	}
	return newShaped(api, like, nil, C.scalar_of(api, C.int(ort.TensorElementDataTypeString)))
}

func newShaped(api *unsafe.Pointer, like ort.Value, shape []int64, m C.made) (ort.Value, error) {
	if err := statusError(api, m.status); err != nil {
		_ = like.Destroy()
		return nil, err
	}
	return &shaped{Value: like, value: m.value, shape: append(ort.Shape{}, shape...), api: api}, nil
}

// GetShape implements ort.Value.
func (s *shaped) GetShape() ort.Shape { return s.shape }

// GetInternals implements ort.Value.
func (s *shaped) GetInternals() *ort.ValueInternalData {
	return (*ort.ValueInternalData)(unsafe.Pointer(&s.value))
}

// Destroy implements ort.Value.
func (s *shaped) Destroy() error {
	C.release_made(s.api, s.value)
	s.value = nil
	return s.Value.Destroy()
}
