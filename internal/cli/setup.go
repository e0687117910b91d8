package cli

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/runtime/native"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
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
		name: "setup", summary: "fetch ONNX Runtime, which runs ONNX models",
		usage: "[--registry URL] [--json] [--to DIR [--platform OS/ARCH]]",
		about: `
Fetches ONNX Runtime's library for this machine from the npm package onnxruntime-node into the user's cache, where
this program looks for it. A file with another SHA-256 sum than the one that the program knows is refused. Releases
bring the library and need no setup; then, and where it was fetched before, nothing is done.
With --to it is fetched into that folder, for a machine without network: put it beside the program there.
The registry is npm's (npm_config_registry, ~/.npmrc), proxies are those of HTTPS_PROXY and NO_PROXY.`,
		examples: "sluice setup\nsluice setup --registry https://npm.example.com --json\n" +
			"sluice setup --to lib --platform linux/arm64",
		prepare: func(flags *flag.FlagSet) func(*Env, []string) error {
			registry := flags.String("registry", "", "npm registry, a `URL`; instead of npm's own setting")
			to := flags.String("to", "", "`folder` to fetch it into; instead of the user's cache")
			platform := flags.String("platform", runtime.GOOS+"/"+runtime.GOARCH,
				"with --to, the `machine` it is for: linux/amd64, linux/arm64 or darwin/arm64")
			asJSON := flags.Bool("json", false, "print JSON")
			return func(e *Env, args []string) error {
				system, arch, ok := strings.Cut(*platform, "/")
				if len(args) > 0 || !ok || *to == "" && *platform != runtime.GOOS+"/"+runtime.GOARCH {
					return fault.Errorf(fault.Usage, "no arguments are taken, and --platform is OS/ARCH, beside --to")
				}
				from := native.Source{Registry: *registry, OS: system, Arch: arch}
				if from.Registry == "" {
					from.Registry = native.ConfiguredRegistry(e.Getenv)
				}
				r, err := setup(e, from, *to)
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
func setup(e *Env, from native.Source, to string) (r setupReport, err error) {
	r.Version = native.Version
	if to != "" {
		r.Path, err = fetched(e, from, to)
		r.Fetched, r.Found = true, "for "+from.OS+"/"+from.Arch
		return r, err
	}
	if r.Library, err = onnx.Find(); err == nil && r.Found != native.OfSystem {
		return r, nil
	}
	if err != nil && (e.Getenv(native.EnvONNXRuntime) != "" || !onnx.Linked) {
		return r, fault.Wrap(fault.Missing, err) // what the variable names comes before all that could be fetched
	}
	folder, err := native.Folder()
	if err != nil {
		return r, fault.Wrap(fault.Missing, err)
	}
	if _, err := fetched(e, from, folder); err != nil {
		return r, err
	}
	r.Fetched = true
	r.Library, err = onnx.Find()
	return r, err
}

func fetched(e *Env, from native.Source, folder string) (string, error) {
	fmt.Fprintf(e.Stderr, "fetching ONNX Runtime %s from %s\n", native.Version, from.Registry)
	from.Client = &http.Client{Timeout: setupTimeout}
	defer from.Client.CloseIdleConnections()
	path, err := from.Fetch(e.Context, folder)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, native.ErrMissing):
		return "", fault.Wrap(fault.Missing, err)
	}
	return "", fault.Errorf(fault.Missing, "%w; see --registry, or set %s to the path of a library", err,
		native.EnvONNXRuntime)
}
