package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is no model, no folder of models and no configuration is named with what would be one.
func TestServeOfOddPaths(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Chdir(dir)
	for _, x := range []string{"empty", "models"} {
		if err := os.Mkdir(x, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, "text.onnx", "hello")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"missing.onnx"}, ExitUsage, "no such file"},
		{[]string{"text.onnx"}, ExitConfig, "read model text.onnx: "},
		{[]string{"text.onnx"}, ExitConfig, "serve takes ONNX models, models in Python, and folders"},
		{[]string{"empty"}, ExitConfig, "no model lies in it: want NAME/1/model.onnx"},
		{nil, ExitUsage, "there is no sluice.yaml here: name what to serve"},
		{[]string{"-f", "text.onnx"}, ExitUsage, "models are served without a configuration: sluice serve text.onnx"},
		{[]string{"-f", "models"}, ExitUsage, "models are served without a configuration: sluice serve models"},
		{[]string{"-f", "missing.yaml"}, ExitConfig, "missing.yaml: no such file"},
	} {
		code, _, errs := sluice(t, append([]string{"serve"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("serve %v: %d %s, want %d and %q", c.args, code, errs, c.code, c.want)
		}
	}
}

// An address that cannot be listened at is named by its setting.
func TestServeWhereNothingCanListen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	write(t, path, fmt.Sprintf(smallWorld, "sluice"))
	for address, want := range map[string]string{
		l.Addr().String(): "another program listens there", "nonsense": "want HOST:PORT",
	} {
		code, _, errs := sluice(t, "serve", "-f", path, "--http", "off", "--grpc", address, "--admin", "off")
		if code == ExitOK || !strings.Contains(errs, "server.grpc, or --grpc: ") || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", address, code, errs)
		}
	}
}
