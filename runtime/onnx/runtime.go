//go:build cgo

package onnx

import (
	"fmt"
	"path/filepath"
	"sync"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/runtime/native"
)

// runtimeState is the process's one ONNX Runtime environment. It is never closed: the library crashes if it is unloaded
// while one of its threads is alive.
var runtimeState struct {
	sync.Mutex
	library string
}

// initRuntime loads the library, once per process. An empty path means the one that native.ONNXRuntime finds.
func initRuntime(library string) error {
	if library == "" {
		found, err := native.ONNXRuntime()
		if err != nil {
			return err
		}
		library = found
	}
	library, err := filepath.Abs(library)
	if err != nil {
		return fmt.Errorf("onnx: library %q: %w", library, err)
	}
	runtimeState.Lock()
	defer runtimeState.Unlock()
	if runtimeState.library == library {
		return nil
	}
	if runtimeState.library != "" {
		return fmt.Errorf("onnx: library %s cannot be loaded: this process already runs %s", library,
			runtimeState.library)
	}
	if !ort.IsInitialized() {
		standInForLocale()
		ort.SetSharedLibraryPath(library)
		// Failures are returned as errors; the runtime's own log would print them a second time.
		if err := ort.InitializeEnvironment(ort.WithLogLevelFatal()); err != nil {
			return fmt.Errorf(
				"onnx: load %s: %w; run `make setup`, or set %s to an ONNX Runtime library for this machine",
				library, err, native.EnvONNXRuntime)
		}
	}
	runtimeState.library = library
	return nil
}

// Version returns the version of the loaded ONNX Runtime library, or "" before the first New.
func Version() string {
	runtimeState.Lock()
	defer runtimeState.Unlock()
	if runtimeState.library == "" {
		return ""
	}
	return ort.GetVersion()
}
