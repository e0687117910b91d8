package image_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// built runs scripts/image.sh once for all tests and returns the image and the digest that it printed.
func built(t *testing.T, folder string) (v1.Image, string) {
	t.Helper()
	cmd := exec.Command(filepath.Join("..", "..", "..", "scripts", "image.sh"), folder)
	// Without -trimpath compiled packages are shared with the tests. GOFLAGS of the caller would change the programs.
	cmd.Env = append(os.Environ(), "SLUICE_IMAGE_FLAGS=", "GOFLAGS=")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("scripts/image.sh: %v\n%s", err, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	_, digest, _ := strings.Cut(lines[len(lines)-1], "@")
	index, err := layout.ImageIndexFromPath(filepath.Join(folder, "oci"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil || len(m.Manifests) != 1 || m.Manifests[0].Digest.String() != digest {
		t.Fatalf("the layout holds %+v, %v; want %s", m, err, digest)
	}
	img, err := index.Image(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return img, digest
}

func TestImage(t *testing.T) {
	img, digest := built(t, t.TempDir())
	root := filepath.Join(t.TempDir(), "root")
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("is the same twice", func(t *testing.T) {
		if _, second := built(t, t.TempDir()); second != digest {
			t.Errorf("the digests are %s and %s", digest, second)
		}
	})
	t.Run("has no root and no shell", func(t *testing.T) {
		if config.Config.User != "65532:65532" {
			t.Errorf("the user is %q", config.Config.User)
		}
		for _, name := range unpack(t, img, root) {
			if base := filepath.Base(name); base == "sh" || base == "bash" || base == "busybox" {
				t.Errorf("%s is in the image", name)
			}
		}
	})
	t.Run("answers", func(t *testing.T) { answers(t, root, config.Config) })
	t.Run("holds the operator", func(t *testing.T) {
		out := contained(t, root, config.Config, "", "/usr/local/bin/sluice-operator", "version")
		text, err := out.CombinedOutput()
		if err != nil || !strings.Contains(string(text), "sluice-operator") {
			t.Errorf("%v: %s", err, text)
		}
	})
}

// answers starts `sluice serve` in the image and has it run a model.
func answers(t *testing.T, root string, config v1.Config) {
	data := t.TempDir()
	if err := onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic, 3).Write(filepath.Join(data, "models", "echo",
		"1", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	text := fmt.Sprintf(`
version: 1
device_types: [{name: d, cores: 1}]
workers: [{name: w}]
models: {repository: models}
server: {http: %q, grpc: "off", admin: "off", not_ready: 0s}
apps: [{name: echo, slo: {latency: 1s}, variants: [{name: echo}]}]
`, address)
	if err := os.WriteFile(filepath.Join(data, "sluice.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(data, func(p string, d os.DirEntry, err error) error {
		return errors.Join(err, os.Chmod(p, 0o755)) // another user reads it
	}); err != nil {
		t.Fatal(err)
	}
	cmd := contained(t, root, config, data, "/usr/local/bin/sluice", "serve", "-f", "/data/sluice.yaml")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	const query = `{"inputs":[{"name":"input","shape":[1,3],"datatype":"FP32","data":[1,2,4]}]}`
	var got string
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline) && got == ""; {
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v\n%s", err, log.String())
		case <-time.After(50 * time.Millisecond):
		}
		res, err := http.Post("http://"+address+"/v2/models/echo/infer", "application/json", strings.NewReader(query))
		if err != nil {
			continue // not listening yet
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			got = string(body)
		}
	}
	if !strings.Contains(got, `"data":[1,2,4]`) {
		t.Errorf("the answer is %q", got)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v\n%s", err, log.String())
	}
}

// contained is a command in the image as Kubernetes' restricted pods run it: a user who is not root, no capabilities,
// no new rights, a root that cannot be written to. It has the network of this machine, and data at /data.
func contained(t *testing.T, root string, config v1.Config, data string, args ...string) *exec.Cmd {
	t.Helper()
	runc, err := exec.LookPath("runc")
	if err != nil {
		t.Skip("runc is not installed: the image is built and looked at, not run (apt install runc)")
	}
	if os.Getuid() != 0 {
		t.Skip("runc is run as root")
	}
	bundle := t.TempDir()
	spec := exec.Command(runc, "spec", "-b", bundle)
	if out, err := spec.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path := filepath.Join(bundle, "config.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	c["root"] = map[string]any{"path": root, "readonly": true}
	c["process"] = map[string]any{"user": map[string]any{"uid": 65532, "gid": 65532}, "args": args, "env": config.Env,
		"cwd": config.WorkingDir, "noNewPrivileges": true, "capabilities": map[string]any{}}
	mounts := append(c["mounts"].([]any), map[string]any{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs",
		"options": []string{"nosuid", "nodev", "mode=1777"}})
	if data != "" {
		if err := os.MkdirAll(filepath.Join(root, "data"), 0o755); err != nil {
			t.Fatal(err)
		}
		mounts = append(mounts, map[string]any{"destination": "/data", "type": "none", "source": data,
			"options": []string{"rbind", "ro"}})
	}
	// Control groups are the machine's: what runs the tests may not have the right to change them.
	c["mounts"] = slices.DeleteFunc(mounts, func(m any) bool { return m.(map[string]any)["type"] == "cgroup" })
	linux := c["linux"].(map[string]any)
	linux["namespaces"] = slices.DeleteFunc(linux["namespaces"].([]any), func(n any) bool {
		return n.(map[string]any)["type"] == "network"
	})
	if text, err = json.Marshal(c); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("sluice-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	t.Cleanup(func() {
		// It is gone already where all went well.
		_ = exec.Command(runc, "delete", "--force", name).Run()
	})
	return exec.Command(runc, "run", "-b", bundle, name)
}

// unpack writes the image's files below root and returns their names.
func unpack(t *testing.T, img v1.Image, root string) (names []string) {
	t.Helper()
	in := mutate.Extract(img)
	defer in.Close()
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	into, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close()
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		switch mode := h.FileInfo().Mode(); {
		case mode.IsDir():
			err = into.MkdirAll(h.Name, mode.Perm())
		case mode.IsRegular():
			var f *os.File
			if f, err = into.OpenFile(h.Name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode.Perm()); err == nil {
				_, err = io.Copy(f, r)
				err = errors.Join(err, f.Close())
			}
		default:
			err = fmt.Errorf("a %v", mode)
		}
		if err != nil {
			t.Fatalf("%s: %v", h.Name, err)
		}
	}
}
