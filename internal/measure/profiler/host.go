package profiler

import (
	"runtime"

	"github.com/sluice-serving/sluice/internal/runtime/device"
)

// ThisHost describes this machine. onnxruntime is the version of the library, or empty.
func ThisHost(onnxruntime string) Host {
	return Host{
		CPU: device.CPUName(), Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH,
		ONNXRuntime: onnxruntime,
	}
}
