package device

import "strings"

// SaysOutOfMemory reports whether an error's text means that a device lacked memory, in the words of ONNX Runtime, CUDA
// and PyTorch.
func SaysOutOfMemory(text string) bool {
	for _, words := range []string{
		"Failed to allocate memory", "CUDA failure 2", "out of memory", "CUDA_ERROR_OUT_OF_MEMORY",
		"is smaller than requested bytes", "bad allocation", "std::bad_alloc", "CUBLAS_STATUS_ALLOC_FAILED",
		"CUDNN_STATUS_ALLOC_FAILED",
	} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}
