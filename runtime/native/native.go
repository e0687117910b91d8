// Package native finds the libraries that sluice loads at run time and does not contain: ONNX Runtime (a shared
// library) and HiGHS (WebAssembly). `make setup` installs them; the program builds and starts without them.
package native

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// ErrMissing is wrapped by errors about a library that was not found. They say how to get it.
var ErrMissing = errors.New("library not found")

// The environment variables that name a library outside the project, a GPU build for instance. They take precedence.
const (
	EnvONNXRuntime = "SLUICE_ONNXRUNTIME" // path of libonnxruntime
	EnvHiGHS       = "SLUICE_HIGHS"       // path of highs.wasm
)

const modulePath = "github.com/sluice-serving/sluice"

// ONNXRuntime returns the absolute path of the ONNX Runtime library: what SLUICE_ONNXRUNTIME names, else the one in
// node_modules beside the program (or beside the bin folder it lies in), else the one in node_modules at the root of
// the sluice checkout that holds the working directory. The error wraps ErrMissing and says what to do.
func ONNXRuntime() (path string, err error) { return here().onnxRuntime() }

// HiGHS returns the absolute path of highs.wasm, looked for as ONNXRuntime does; SLUICE_HIGHS names another one.
func HiGHS() (path string, err error) { return here().highs() }

// place is all inputs of the search, so that tests need not change the environment or the directory.
type place struct {
	getenv     func(string) string
	executable string // empty when unknown
	workdir    string // empty when unknown
	goos       string
	goarch     string
}

func here() place {
	exe, err := os.Executable()
	if err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real // node_modules is beside the program, not beside a link to it
		}
	}
	wd, _ := os.Getwd()
	return place{os.Getenv, exe, wd, runtime.GOOS, runtime.GOARCH}
}

func (p place) onnxRuntime() (string, error) {
	file, err := onnxRuntimeFile(p.goos, p.goarch)
	if err != nil && p.getenv(EnvONNXRuntime) == "" {
		return "", err
	}
	return p.find("ONNX Runtime", EnvONNXRuntime, file)
}

func (p place) highs() (string, error) {
	return p.find("HiGHS", EnvHiGHS, filepath.Join("highs", "build", "highs.wasm"))
}

// onnxRuntimeFile returns the path of the library of the npm package onnxruntime-node, below node_modules.
func onnxRuntimeFile(goos, goarch string) (string, error) {
	name, arch := map[string]string{
		"linux":  "libonnxruntime.so.1",
		"darwin": "libonnxruntime.1.dylib",
	}[goos], map[string]string{"amd64": "x64", "arm64": "arm64"}[goarch]
	if name == "" || arch == "" || goos == "darwin" && goarch != "arm64" {
		return "", fmt.Errorf(
			"native: ONNX Runtime: %w: npm has no build for %s/%s; install one and set %s to its path",
			ErrMissing, goos, goarch, EnvONNXRuntime)
	}
	return filepath.Join("onnxruntime-node", "bin", "napi-v6", goos, arch, name), nil
}

// find returns the first of the possible paths of a library at which there is a regular file.
func (p place) find(what, env, file string) (string, error) {
	if named := p.getenv(env); named != "" {
		abs := named
		if !filepath.IsAbs(abs) {
			abs = filepath.Join(p.workdir, abs)
		}
		if err := isFile(abs); err != nil {
			// Falling back to another library would hide the mistake.
			return "", fmt.Errorf("native: %s: %w: %s=%q: %w; name an existing file, or unset it and run `make setup`",
				what, ErrMissing, env, named, err)
		}
		return abs, nil
	}
	roots := p.roots()
	for _, root := range roots {
		path := filepath.Join(root, "node_modules", file)
		if isFile(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("native: %s: %w: no %s in node_modules of %q; run `make setup` in the sluice checkout, or "+
		"set %s to the path of an installed one",
		what, ErrMissing, filepath.Base(file), roots, env)
}

// roots lists the folders whose node_modules is searched. Folders between the working directory and the checkout's
// root, or outside of a checkout, are not searched: loading a library runs its code, so it must not depend on the
// working directory.
func (p place) roots() []string {
	var out []string
	add := func(dir string) {
		for _, o := range out {
			if o == dir {
				return
			}
		}
		out = append(out, dir)
	}
	if p.executable != "" {
		dir := filepath.Dir(p.executable)
		add(dir)
		add(filepath.Dir(dir))
	}
	if root := moduleRoot(p.workdir); root != "" {
		add(root)
	}
	return out
}

// moduleRoot walks up from dir to the folder whose go.mod is this module's, or returns "".
func moduleRoot(dir string) string {
	for dir != "" {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte("module "+modulePath+"\n")) {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return ""
}

func isFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	return nil
}
