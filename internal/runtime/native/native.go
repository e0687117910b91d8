// Package native finds the library that sluice loads at run time and does not contain: ONNX Runtime. Releases bring it,
// `sluice setup` fetches it for the program alone, and `make setup` for a checkout. The program builds and starts
// without it.
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

// EnvONNXRuntime is the environment variable that names another ONNX Runtime library, a GPU build for instance.
const EnvONNXRuntime = "SLUICE_ONNXRUNTIME"

// OfSystem is why a library is taken that lies in the system's folders.
const OfSystem = "of the system"

const modulePath = "github.com/sluice-serving/sluice"

// Library is an ONNX Runtime library that was found.
type Library struct {
	Path  string `json:"path"`  // absolute
	Found string `json:"found"` // why it is this one, for people
}

// ONNXRuntime returns the ONNX Runtime library. The first of these is taken:
//
//  1. what SLUICE_ONNXRUNTIME names. It is first because a person has set it: a library that happens to lie somewhere
//     must not take its place;
//  2. the one beside the program;
//  3. the one in lib/sluice beside the program's bin folder, as releases and images have it;
//  4. the one in node_modules, for developers: beside the program, beside its bin folder, or at the root of the
//     checkout that holds the working directory;
//  5. the one that `sluice setup` fetched;
//  6. the one in the system's folders of libraries. It comes last because its version is anybody's.
//
// The error wraps ErrMissing and says what to do.
func ONNXRuntime() (Library, error) { return here().find() }

// place is all inputs of the search, so that tests need not change the environment or the directory.
type place struct {
	getenv     func(string) string
	executable string // empty when unknown
	workdir    string // empty when unknown
	fetched    string // the folder of Fetch; empty when unknown
	system     []string
	goos       string
	goarch     string
}

func here() place {
	exe, err := os.Executable()
	if err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real // the library is beside the program, not beside a link to it
		}
	}
	wd, _ := os.Getwd()
	fetched, _ := Folder()
	return place{os.Getenv, exe, wd, fetched, systemFolders(), runtime.GOOS, runtime.GOARCH}
}

// systemFolders are where distributions and people put shared libraries.
func systemFolders() []string {
	if runtime.GOOS == "darwin" {
		return []string{"/opt/homebrew/lib", "/usr/local/lib"}
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return []string{"/usr/local/lib", "/usr/lib/" + machine + "-linux-gnu", "/usr/lib64", "/usr/lib"}
}

// find returns the first library of the list of ONNXRuntime that is a regular file.
func (p place) find() (Library, error) {
	if named := p.getenv(EnvONNXRuntime); named != "" {
		path := named
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.workdir, path)
		}
		if err := isFile(path); err != nil {
			// Falling back to another library would hide the mistake.
			return Library{}, fmt.Errorf("native: ONNX Runtime: %w: %s=%q: %w; name an existing file, or unset it and "+
				"run `sluice setup`", ErrMissing, EnvONNXRuntime, named, err)
		}
		return Library{path, "named by " + EnvONNXRuntime}, nil
	}
	name := fileName(p.goos)
	for _, at := range p.candidates(name) {
		if isFile(at.Path) == nil {
			return at, nil
		}
	}
	if _, err := packaged(p.goos, p.goarch); err != nil {
		return Library{}, err
	}
	return Library{}, fmt.Errorf("native: ONNX Runtime: %w: no %s beside the program, in lib/sluice beside its "+
		"folder, in node_modules or among the system's libraries; run `sluice setup` to fetch it (in a checkout "+
		"`make setup`), or set %s to the path of one", ErrMissing, name, EnvONNXRuntime)
}

// candidates lists where a library may be, in order.
func (p place) candidates(name string) (list []Library) {
	if p.executable != "" {
		dir := filepath.Dir(p.executable)
		above := filepath.Dir(dir)
		list = append(list, Library{filepath.Join(dir, name), "beside the program"},
			Library{filepath.Join(above, "lib", "sluice", name), "in lib/sluice beside the program's folder"})
	}
	if file, err := packaged(p.goos, p.goarch); err == nil {
		for _, root := range p.roots() {
			list = append(list, Library{filepath.Join(root, "node_modules", npmPackage, file), "in node_modules"})
		}
	}
	if p.fetched != "" {
		list = append(list, Library{filepath.Join(p.fetched, name), "fetched by sluice setup"})
	}
	for _, dir := range p.system {
		list = append(list, Library{filepath.Join(dir, name), OfSystem})
	}
	return list
}

// fileName is the name of the library, by which other programs load it, too.
func fileName(goos string) string {
	if goos == "darwin" {
		return "libonnxruntime.1.dylib"
	}
	return "libonnxruntime.so.1"
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
