package native

import (
	"errors"
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

func linux(dir string) place {
	return place{env(nil), filepath.Join(dir, "install", "bin", "sluice"), dir, "linux", "amd64"}
}

func TestFindsBesideTheProgram(t *testing.T) {
	dir := t.TempDir()
	p := linux(dir)
	above := write(t, filepath.Join(dir, "install", x64), "")
	if got, err := p.onnxRuntime(); got != above || err != nil {
		t.Errorf("one above bin: got %q, %v, want %q", got, err, above)
	}
	beside := write(t, filepath.Join(dir, "install", "bin", x64), "")
	if got, err := p.onnxRuntime(); got != beside || err != nil {
		t.Errorf("beside the program: got %q, %v, want %q", got, err, beside)
	}
}

func TestFindsAtTheModuleRoot(t *testing.T) {
	dir := t.TempDir()
	want := write(t, filepath.Join(dir, x64), "")
	wasm := write(t, filepath.Join(dir, "node_modules/highs/build/highs.wasm"), "")
	p := linux(dir)
	p.workdir = filepath.Join(dir, "backend", "onnx")
	write(t, filepath.Join(p.workdir, x64), "") // no go.mod beside it: not ours to load

	if got, err := p.onnxRuntime(); err == nil {
		t.Errorf("outside a checkout: got %q, want an error", got)
	}
	write(t, filepath.Join(dir, "go.mod"), "module example.com/other\n")
	if got, err := p.onnxRuntime(); err == nil {
		t.Errorf("in another module: got %q, want an error", got)
	}
	write(t, filepath.Join(dir, "go.mod"), "module "+modulePath+"\n\ngo 1.26\n")
	if got, err := p.onnxRuntime(); got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if got, err := p.highs(); got != wasm || err != nil {
		t.Errorf("HiGHS: got %q, %v, want %q", got, err, wasm)
	}
}

func TestEnvironmentWins(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "install", x64), "")
	own := write(t, filepath.Join(dir, "gpu", "libonnxruntime.so"), "")
	p := linux(dir)
	for _, named := range []string{own, "gpu/libonnxruntime.so"} {
		p.getenv = env(map[string]string{EnvONNXRuntime: named})
		if got, err := p.onnxRuntime(); got != own || err != nil {
			t.Errorf("%s: got %q, %v, want %q", named, got, err, own)
		}
	}
	p.goos = "plan9" // npm has nothing for it, the owner has
	if got, err := p.onnxRuntime(); got != own || err != nil {
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
		{"absent", with(func(*place) {}), []string{"libonnxruntime.so.1", "make setup", EnvONNXRuntime}},
		{"nothing known", place{env(nil), "", "", "linux", "amd64"}, []string{"make setup", EnvONNXRuntime}},
		{
			"named and absent", with(named("/nowhere/lib.so")), []string{
				EnvONNXRuntime, "/nowhere/lib.so", "no such file", "make setup",
			},
		},
		{"named and a folder", with(named(dir)), []string{EnvONNXRuntime, "not a regular file"}},
		{"no such platform", with(func(p *place) { p.goarch = "riscv64" }), []string{"linux/riscv64", EnvONNXRuntime}},
		{"no such build", with(func(p *place) { p.goos = "darwin" }), []string{"darwin/amd64", EnvONNXRuntime}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.p.onnxRuntime()
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

// TestThisCheckout looks for the real libraries, which `make test` fetches before it runs.
func TestThisCheckout(t *testing.T) {
	for _, find := range []func() (string, error){ONNXRuntime, HiGHS} {
		path, err := find()
		if err != nil {
			if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "make setup") {
				t.Errorf("error is no help: %v", err)
			}
			t.Log(err)
			continue
		}
		if err := isFile(path); err != nil {
			t.Error(err)
		}
		if !filepath.IsAbs(path) {
			t.Errorf("%q is not absolute", path)
		}
	}
}
