package main

import (
	"context"
	"fmt"
	"runtime/debug"
)

func init() {
	register(command{"version", "print the version of this program and of Go", version})
}

func version(context.Context, []string) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return fmt.Errorf("this binary was built without build information")
	}
	fmt.Printf("sluice-operator %s, %s\n", info.Main.Version, info.GoVersion)
	return nil
}
