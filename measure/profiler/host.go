package profiler

import (
	"bufio"
	"os"
	"runtime"
	"strings"
)

// ThisHost describes this machine. onnxruntime is the version of the library, or empty.
func ThisHost(onnxruntime string) Host {
	return Host{
		CPU: cpuName(), Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, ONNXRuntime: onnxruntime,
	}
}

// cpuName returns the name of the processor on Linux, elsewhere the architecture.
func cpuName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
