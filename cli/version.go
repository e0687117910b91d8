package cli

import (
	"flag"
	"fmt"
	"runtime"

	"github.com/sluice-serving/sluice/host"
	"github.com/sluice-serving/sluice/runtime/native"
)

func versionCommand() command {
	return command{
		name: "version", summary: "what this program is and which libraries it finds", usage: "",
		about: "Prints the version of the program and where it finds ONNX Runtime.",
		prepare: func(*flag.FlagSet) func(*Env, []string) error {
			return func(e *Env, _ []string) error {
				fmt.Fprintf(e.Stdout, "sluice %s, %s, %s/%s\n", host.Version(), runtime.Version(), runtime.GOOS,
					runtime.GOARCH)
				if path, err := native.ONNXRuntime(); err == nil {
					fmt.Fprintf(e.Stdout, "ONNX Runtime: %s\n", path)
				} else {
					fmt.Fprintf(e.Stdout, "ONNX Runtime: %v\n", err)
				}
				return nil
			}
		},
		examples: "sluice version",
	}
}
