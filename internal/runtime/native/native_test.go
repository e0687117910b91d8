package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const x64 = "node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1"

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func env(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func (p place) path() (string, error) {
	l, err := p.find()
	return l.Path, err
}

func linux(dir string) place {
	return place{
		getenv: env(nil), executable: filepath.Join(dir, "install", "bin", "sluice"), workdir: dir, goos: "linux",
		goarch: "amd64",
	}
}

// Each place in the list comes before those below it, and is said.
func TestOrder(t *testing.T) {
	const name = "libonnxruntime.so.1"
	dir := t.TempDir()
	p := linux(dir)
	p.fetched, p.system = filepath.Join(dir, "cache"), []string{filepath.Join(dir, "usr", "lib")}
	own := write(t, filepath.Join(dir, "gpu", name), "")
	for _, at := range []struct{ path, found string }{
		{filepath.Join(dir, "usr", "lib", name), OfSystem},
		{filepath.Join(dir, "cache", name), "fetched by sluice setup"},
		{filepath.Join(dir, "install", x64), "in node_modules"},
		{filepath.Join(dir, "install", "lib", "sluice", name), "in lib/sluice beside the program's folder"},
		{filepath.Join(dir, "install", "bin", name), "beside the program"},
		{own, "named by " + EnvONNXRuntime},
	} {
		if got, err := p.find(); err == nil && got.Path == at.path {
			t.Errorf("%s is found before it is there", at.path)
		}
		if at.path == own {
			p.getenv = env(map[string]string{EnvONNXRuntime: own})
		} else {
			write(t, at.path, "")
		}
		if got, err := p.find(); err != nil || got.Path != at.path || got.Found != at.found {
			t.Errorf("got %+v, %v, want %s (%s)", got, err, at.path, at.found)
		}
	}
}

func TestFindsBesideTheProgram(t *testing.T) {
	dir := t.TempDir()
	p := linux(dir)
	above := write(t, filepath.Join(dir, "install", x64), "")
	if got, err := p.path(); got != above || err != nil {
		t.Errorf("one above bin: got %q, %v, want %q", got, err, above)
	}
	beside := write(t, filepath.Join(dir, "install", "bin", x64), "")
	if got, err := p.path(); got != beside || err != nil {
		t.Errorf("beside the program: got %q, %v, want %q", got, err, beside)
	}
}

func TestFindsAtTheModuleRoot(t *testing.T) {
	dir := t.TempDir()
	want := write(t, filepath.Join(dir, x64), "")
	p := linux(dir)
	p.workdir = filepath.Join(dir, "backend", "onnx")
	write(t, filepath.Join(p.workdir, x64), "") // no go.mod beside it: not ours to load

	if got, err := p.path(); err == nil {
		t.Errorf("outside a checkout: got %q, want an error", got)
	}
	write(t, filepath.Join(dir, "go.mod"), "module example.com/other\n")
	if got, err := p.path(); err == nil {
		t.Errorf("in another module: got %q, want an error", got)
	}
	write(t, filepath.Join(dir, "go.mod"), "module "+modulePath+"\n\ngo 1.26\n")
	if got, err := p.path(); got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestEnvironmentWins(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "install", x64), "")
	own := write(t, filepath.Join(dir, "gpu", "libonnxruntime.so"), "")
	p := linux(dir)
	for _, named := range []string{own, "gpu/libonnxruntime.so"} {
		p.getenv = env(map[string]string{EnvONNXRuntime: named})
		if got, err := p.path(); got != own || err != nil {
			t.Errorf("%s: got %q, %v, want %q", named, got, err, own)
		}
	}
	p.goos = "plan9" // npm has nothing for it, the owner has
	if got, err := p.path(); got != own || err != nil {
		t.Errorf("named on another platform: got %q, %v, want %q", got, err, own)
	}
}

func TestErrorsSayWhatMends(t *testing.T) {
	dir := t.TempDir()
	with := func(change func(*place)) place {
		p := linux(dir)
		change(&p)
		return p
	}
	named := func(path string) func(*place) {
		return func(p *place) { p.getenv = env(map[string]string{EnvONNXRuntime: path}) }
	}
	write(t, filepath.Join(dir, "install", "bin", "sluice"), "")
	tests := []struct {
		name string
		p    place
		want []string
	}{
		{"absent", with(func(*place) {}), []string{"libonnxruntime.so.1", "sluice setup", EnvONNXRuntime}},
		{
			"nothing known", place{getenv: env(nil), goos: "linux", goarch: "amd64"},
			[]string{"sluice setup", EnvONNXRuntime},
		},
		{
			"named and absent", with(named("/nowhere/lib.so")), []string{
				EnvONNXRuntime, "/nowhere/lib.so", "no such file", "sluice setup",
			},
		},
		{"named and a folder", with(named(dir)), []string{EnvONNXRuntime, "not a regular file"}},
		{"no such platform", with(func(p *place) { p.goarch = "riscv64" }), []string{"linux/riscv64", EnvONNXRuntime}},
		{"no such build", with(func(p *place) { p.goos = "darwin" }), []string{"darwin/amd64", EnvONNXRuntime}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.p.path()
			if !errors.Is(err, ErrMissing) {
				t.Fatalf("got %q, %v, want ErrMissing", got, err)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not mention %q", err, w)
				}
			}
		})
	}
}

// TestThisCheckout looks for the real library, which `make test` fetches before it runs.
func TestThisCheckout(t *testing.T) {
	l, err := ONNXRuntime()
	if err != nil {
		if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "sluice setup") {
			t.Errorf("error is no help: %v", err)
		}
		t.Skip(err)
	}
	if err := isFile(l.Path); err != nil || !filepath.IsAbs(l.Path) {
		t.Errorf("%q: %v", l.Path, err)
	}
}

// The version that is fetched is the one that checkouts have.
func TestVersionIsThatOfThePackage(t *testing.T) {
	text, err := os.ReadFile("../../../package.json")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%q: %q", npmPackage, Version); !strings.Contains(string(text), want) {
		t.Errorf("package.json does not have %s", want)
	}
}
