//go:build cgo

package onnx

import (
	"fmt"
	"path/filepath"
	"sync"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/internal/runtime/native"
)

// runtimeState is the process's one ONNX Runtime environment. It is never closed: the library crashes if it is unloaded
// while one of its threads is alive.
var runtimeState struct {
	sync.Mutex
	library string
	found   string // native.Library.Found
}

// initRuntime loads the library, once per process. An empty path means the one that native.ONNXRuntime finds.
func initRuntime(library string) error {
	found := "named by the program"
	if library == "" {
		l, err := Find()
		if err != nil {
			return err
		}
		library, found = l.Path, l.Found
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
				"onnx: load %s (%s): %w; run `sluice setup`, or set %s to an ONNX Runtime library for this machine",
				library, found, err, native.EnvONNXRuntime)
		}
	}
	runtimeState.library, runtimeState.found = library, found
	return nil
}

// Linked says whether the program can load the library at all.
const Linked = true

// Find returns the library that New loads unless its configuration names one.
func Find() (native.Library, error) { return native.ONNXRuntime() }

// Library returns the library that is loaded, and why it is this one. Both are empty before the first New.
func Library() native.Library {
	runtimeState.Lock()
	defer runtimeState.Unlock()
	return native.Library{Path: runtimeState.library, Found: runtimeState.found}
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
