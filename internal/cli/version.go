package cli

import (
	"flag"
	"fmt"
	"io"
	"runtime"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
)

func versionCommand() command {
	return command{
		name: "version", summary: "what this program is and which libraries it finds", usage: "",
		about: "Prints the version of the program, the commit it was built from, and which ONNX Runtime it takes.",
		prepare: func(*flag.FlagSet) func(*Env, []string) error {
			return func(e *Env, _ []string) error {
				commit := ""
				if at := host.Revision(); at != "" && at != host.Version() {
					commit = " (" + at + ")"
				}
				fmt.Fprintf(e.Stdout, "sluice %s%s, %s, %s/%s\n", host.Version(), commit, runtime.Version(),
					runtime.GOOS, runtime.GOARCH)
				printLibrary(e.Stdout)
				return nil
			}
		},
		examples: "sluice version",
	}
}

// printLibrary says which ONNX Runtime this program takes, or why none.
func printLibrary(to io.Writer) {
	if l, err := onnx.Find(); err == nil {
		fmt.Fprintf(to, "ONNX Runtime: %s (%s)\n", l.Path, l.Found)
	} else {
		fmt.Fprintf(to, "ONNX Runtime: %v\n", err)
	}
}
