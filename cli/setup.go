package cli

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-serving/sluice/host/fault"
	"github.com/sluice-serving/sluice/runtime/native"
	"github.com/sluice-serving/sluice/runtime/onnx"
)

// setupTimeout bounds the download on a slow line; a broken one ends earlier.
const setupTimeout = 15 * time.Minute

// setupReport is what --json prints.
type setupReport struct {
	native.Library
	Version string `json:"version"`
	Fetched bool   `json:"fetched"` // now, and not before
}

func setupCommand() command {
	return command{
		name: "setup", summary: "fetch ONNX Runtime, which runs ONNX models", usage: "[--registry URL] [--json]",
		about: `
Fetches ONNX Runtime's library for this machine from the npm package onnxruntime-node into the user's cache, where
this program looks for it. A file with another SHA-256 sum than the one that the program knows is refused. Releases
bring the library and need no setup; then, and where it was fetched before, nothing is done.
The registry is npm's (npm_config_registry, ~/.npmrc), proxies are those of HTTPS_PROXY and NO_PROXY.`,
		examples: "sluice setup\nsluice setup --registry https://npm.example.com --json",
		prepare: func(flags *flag.FlagSet) func(*Env, []string) error {
			registry := flags.String("registry", "", "npm registry, a `URL`; instead of npm's own setting")
			asJSON := flags.Bool("json", false, "print JSON")
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return fault.Errorf(fault.Usage, "no arguments are taken")
				}
				r, err := setup(e, *registry)
				if err != nil {
					return err
				}
				if *asJSON {
					return writeJSON(e.Stdout, r)
				}
				fmt.Fprintf(e.Stdout, "ONNX Runtime is %s (%s)\n", r.Path, r.Found)
				return nil
			}
		},
	}
}

// setup finds the library, or fetches it. A library that a person named, or that lies beside the program, is kept; one
// of the system's may be of any version, and does not hold up a fetch.
func setup(e *Env, registry string) (r setupReport, err error) {
	r.Version = native.Version
	if r.Library, err = onnx.Find(); err == nil && r.Found != native.OfSystem {
		return r, nil
	}
	if err != nil && e.Getenv(native.EnvONNXRuntime) != "" {
		return r, fault.Wrap(fault.Missing, err) // what the variable names comes before all that could be fetched
	}
	folder, err := native.Folder()
	if err != nil {
		return r, fault.Wrap(fault.Missing, err)
	}
	if registry == "" {
		registry = native.ConfiguredRegistry(e.Getenv)
	}
	fmt.Fprintf(e.Stderr, "fetching ONNX Runtime %s from %s\n", native.Version, registry)
	client := &http.Client{Timeout: setupTimeout}
	defer client.CloseIdleConnections()
	if err := native.Fetch(e.Context, client, registry, folder); err != nil {
		if errors.Is(err, native.ErrMissing) {
			return r, fault.Wrap(fault.Missing, err)
		}
		return r, fault.Errorf(fault.Missing, "%w; see --registry, or set %s to the path of a library", err,
			native.EnvONNXRuntime)
	}
	r.Fetched = true
	r.Library, err = onnx.Find()
	return r, err
}
