package native

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// The npm package that has the library, and its version, that of package.json.
const (
	npmPackage = "onnxruntime-node"
	Version    = "1.30.0"
)

// Registry is where npm packages come from unless somebody says otherwise.
const Registry = "https://registry.npmjs.org"

// The largest library, and the most that is read of a package before it comes: no file, however often it is named.
const (
	mostLibrary = 256 << 20
	mostPackage = 1 << 30
)

// digests are lines of a SHA-256 sum and a file below the checkout, also read by scripts/setup.sh.
//
//go:embed native.sha256
var digests string

// packaged returns the path of the library in its npm package.
func packaged(goos, goarch string) (string, error) {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[goarch]
	file := "bin/napi-v6/" + goos + "/" + arch + "/" + fileName(goos)
	if _, err := digest(file); err != nil {
		return "", fmt.Errorf("native: ONNX Runtime: %w: npm has no build for %s/%s; install one and set %s to its "+
			"path", ErrMissing, goos, goarch, EnvONNXRuntime)
	}
	return file, nil
}

// digest is the SHA-256 sum that a file of the npm package must have.
func digest(file string) (string, error) {
	for line := range strings.Lines(digests) {
		sum, path, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if path == "node_modules/"+npmPackage+"/"+file {
			return sum, nil
		}
	}
	return "", fmt.Errorf("native.sha256 does not have %s", file)
}

// Folder returns where Fetch puts the library: in the user's cache.
func Folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("native: no folder to keep the library in: %w; set HOME or XDG_CACHE_HOME", err)
	}
	return filepath.Join(cache, "sluice", "onnxruntime-"+Version), nil
}

// Source is where the library for a kind of machine is fetched from.
type Source struct {
	Client   *http.Client
	Registry string // of npm packages
	OS, Arch string // as Go names them
}

// Fetch fetches the library into a folder and returns its path. Nothing is written under the library's name but the
// very file of native.sha256; where that is there already, nothing is fetched.
func (s Source) Fetch(ctx context.Context, folder string) (path string, err error) {
	file, err := packaged(s.OS, s.Arch)
	if err != nil {
		return "", err
	}
	want, err := digest(file)
	if err != nil {
		return "", err
	}
	path = filepath.Join(folder, fileName(s.OS))
	if got, err := sumOf(path); err == nil && got == want {
		return path, nil
	}
	from, err := url.JoinPath(s.Registry, npmPackage, "-", npmPackage+"-"+Version+".tgz")
	if err != nil {
		return "", fmt.Errorf("native: registry %q: %w", s.Registry, err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(folder, ".fetched-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	err = fetch(ctx, s.Client, from, "package/"+file, want, f)
	if err = errors.Join(err, f.Chmod(0o755), f.Close()); err != nil {
		return "", fmt.Errorf("native: %s: %w", from, err)
	}
	return path, os.Rename(f.Name(), path)
}

// fetch writes one file of a package to out and checks its sum. It reads no more of the package than it needs.
func fetch(ctx context.Context, client *http.Client, from, file, want string, out io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the registry answers %s", answer.Status)
	}
	unzipped, err := gzip.NewReader(answer.Body)
	if err != nil {
		return fmt.Errorf("it is no package: %w", err)
	}
	for r := tar.NewReader(io.LimitReader(unzipped, mostPackage)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("it has no %s in its first %d bytes", file, mostPackage)
		}
		if err != nil {
			return fmt.Errorf("it is broken off or damaged: %w", err)
		}
		if h.Name != file {
			continue
		}
		if h.Size > mostLibrary {
			return fmt.Errorf("%s has %d bytes, more than the %d allowed", file, h.Size, mostLibrary)
		}
		sum := sha256.New()
		if _, err := io.Copy(io.MultiWriter(out, sum), r); err != nil {
			return fmt.Errorf("it is broken off or damaged: %w", err)
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != want {
			return fmt.Errorf("%s has the SHA-256 sum %s, and %s is wanted: it is not the library that this "+
				"program was made for", file, got, want)
		}
		return nil
	}
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
