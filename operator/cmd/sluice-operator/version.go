package main

import (
	"context"
	"fmt"
	"runtime/debug"
)

// release is the version of a release. It is set by
//
//	go build -ldflags "-X main.release=1.2.3"
var release string

func init() {
	register(command{"version", "print the version of this program and of Go", version})
}

func version(context.Context, []string) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return fmt.Errorf("this binary was built without build information")
	}
	name := release
	if name == "" {
		name = info.Main.Version
	}
	fmt.Printf("sluice-operator %s, %s\n", name, info.GoVersion)
	return nil
}
