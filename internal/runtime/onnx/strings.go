//go:build cgo

package onnx

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// The C API of ONNX Runtime is a table of functions that only grows at its end (onnxruntime_c_api.h). These are the
// places of three of its functions, and the version of the table from which on all three are there.
enum { get_error_message = 2, release_status = 93, get_resized_string_tensor_element_buffer = 252, since = 15 };

typedef struct { const void **(*get_api)(uint32_t); } api_base;

static const void **open_api(const char *library) {
	void *handle = dlopen(library, RTLD_NOW);
	if (handle == NULL) return NULL;
	api_base *(*base)(void) = (api_base *(*)(void))dlsym(handle, "OrtGetApiBase");
	return base == NULL ? NULL : base()->get_api(since);
}

// fill_strings sets the elements of a string tensor from index on to those of a BYTES block, which is well formed. It
// returns the status of the first failure.
static void *fill_strings(const void **api, void *value, size_t index, const uint8_t *block, size_t size) {
	void *(*element)(void *, size_t, size_t, char **) =
		(void *(*)(void *, size_t, size_t, char **))api[get_resized_string_tensor_element_buffer];
	for (size_t at = 0; at + 4 <= size; index++) {
		const uint8_t *length = block + at;
		size_t n = (size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
		at += 4;
		char *to = NULL;
		void *status = element(value, index, n, &to);
		if (status != NULL) return status;
		memcpy(to, block + at, n);
		at += n;
	}
	return NULL;
}

static const char *message_of(const void **api, void *status) {
	return ((const char *(*)(void *))api[get_error_message])(status);
}

static void release(const void **api, void *status) { ((void (*)(void *))api[release_status])(status); }
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/tensor"
)

// cAPI is the runtime's table of C functions. The binding hands strings over as C strings, which end at the first NUL;
// this package hands them over with their length, as ONNX Runtime keeps them. It also makes scalars (scalar.go).
var cAPI = sync.OnceValues(func() (*unsafe.Pointer, error) {
	runtimeState.Lock()
	library := runtimeState.library
	runtimeState.Unlock()
	path := C.CString(library)
	defer C.free(unsafe.Pointer(path))
	api := C.open_api(path)
	if api == nil {
		return nil, fmt.Errorf("onnx: %s has no strings with a length: want ONNX Runtime 1.15 or later", library)
	}
	return api, nil
})

// fillStrings sets the elements of a string tensor from index on to those of a well-formed BYTES block, and returns the
// index behind the last one.
func fillStrings(v ort.Value, index int, block []byte) (int, error) {
	n, err := tensor.CountBytes(block)
	if err != nil || n == 0 {
		return index, err
	}
	api, err := cAPI()
	if err != nil {
		return index, err
	}
	// ValueInternalData is a struct with one field, the runtime's value.
	value := *(*unsafe.Pointer)(unsafe.Pointer(v.GetInternals()))
	status := C.fill_strings(api, value, C.size_t(index), (*C.uint8_t)(unsafe.Pointer(&block[0])), C.size_t(len(block)))
	if err := statusError(api, status); err != nil {
		return index, err
	}
	return index + n, nil
}

// statusError returns the error that a status of the runtime stands for, and releases it; nil for none.
func statusError(api *unsafe.Pointer, status unsafe.Pointer) error {
	if status == nil {
		return nil
	}
	err := errors.New("onnx: " + C.GoString(C.message_of(api, status)))
	C.release(api, status)
	return err
}
