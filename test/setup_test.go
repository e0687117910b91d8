package test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/cli"
	"github.com/sluice-serving/sluice/internal/runtime/native"
)

// A program that lies alone says in one line how to get the library, gets it from a registry of npm packages, and then
// serves with it.
func TestSetup(t *testing.T) {
	needsONNX(t)
	library, err := native.ONNXRuntime()
	if err != nil {
		t.Fatal(err)
	}
	_, file, packaged := strings.Cut(library.Path, filepath.Join("node_modules", "onnxruntime-node"))
	if !packaged {
		t.Skipf("%s is not from npm: no package can be made of it", library.Path)
	}
	asked := 0
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		// The reader hangs up after the library.
		_ = tarball(w, "package"+filepath.ToSlash(file), library.Path)
	}))
	defer registry.Close()

	dir := t.TempDir()
	alone := func(args ...string) (status int, said string) {
		out := &lockedBuffer{}
		c := sluiceWith(t, func(c *exec.Cmd) {
			c.Dir = dir
			c.Env = append(c.Env, native.EnvONNXRuntime+"=", "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
			c.Stdout, c.Stderr = out, out
		}, args...)
		if err := c.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			t.Fatal(err)
		}
		return c.ProcessState.ExitCode(), out.String()
	}
	if status, said := alone("example", "adder.onnx"); status != cli.ExitOK {
		t.Fatalf("%d %s", status, said)
	}
	if _, said := alone("version"); strings.Contains(said, native.OfSystem) {
		t.Skip("a library is among the system's")
	}
	status, said := alone("serve", "adder.onnx")
	if status != cli.ExitMissing || !strings.Contains(said, "`sluice setup`") || strings.Count(said, "\n") != 1 {
		t.Fatalf("%d %s, want one line that says how to get it", status, said)
	}
	for _, want := range []string{`"fetched": true`, `"fetched": false`} {
		if status, said := alone("setup", "--json", "--registry", registry.URL); status != cli.ExitOK ||
			!strings.Contains(said, want) {
			t.Errorf("%d %s, want %s", status, said, want)
		}
	}
	if asked != 1 {
		t.Errorf("the registry was asked %d times", asked)
	}
	if _, said := alone("version"); !strings.Contains(said, "(fetched by sluice setup)") {
		t.Errorf("version says %s", said)
	}
	// The proposal of an objective has run the model.
	if status, said := alone("serve", "adder.onnx", "--print-config"); status != cli.ExitOK ||
		!strings.Contains(said, "latency:") {
		t.Errorf("%d %s", status, said)
	}
}

// tarball writes an npm package of one file.
func tarball(to io.Writer, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(to, gzip.NoCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: info.Size()}); err != nil {
		return err
	}
	if _, err := io.Copy(w, f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return errors.Join(w.Close(), z.Close())
}
