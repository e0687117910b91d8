package native

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// pack makes an npm package of one file that claims to have so many bytes.
func pack(t *testing.T, name string, content []byte, claims int64) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, f := range []struct {
		name string
		text []byte
		size int64
	}{{"package/README.md", []byte("words"), 5}, {name, content, claims}} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: f.size}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.text); err != nil {
			t.Fatal(err)
		}
	}
	if claims == int64(len(content)) {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A registry that gives anything but the library is refused with the reason, and what was there before stays.
func TestFetchTakesTheLibraryAlone(t *testing.T) {
	file, err := packaged(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		t.Skip(err)
	}
	real, listed := digests, []byte("this is the library")
	sum := sha256.Sum256(listed)
	digests = hex.EncodeToString(sum[:]) + "  node_modules/" + npmPackage + "/" + file + "\n"
	defer func() { digests = real }()
	in := "package/" + file
	good := pack(t, in, listed, int64(len(listed)))
	for _, x := range []struct {
		name   string
		answer []byte
		status int
		want   string // in the error; empty for none
	}{
		{"the library", good, 200, ""},
		{"another one", pack(t, in, []byte("something else"), 14), 200, "SHA-256"},
		{"half of it", pack(t, in, listed[:10], int64(len(listed))), 200, "broken off"},
		{"half of the package", good[:len(good)/2], 200, "broken off"},
		{"more than is allowed", pack(t, in, listed, mostLibrary+1), 200, "more than"},
		{"a package without it", pack(t, "package/other", listed, int64(len(listed))), 200, "has no " + in},
		{"a page of words", []byte("<html>please log in</html>"), 200, "no package"},
		{"a refusal", nil, 403, "403"},
	} {
		t.Run(x.name, func(t *testing.T) {
			asked, from := "", Source{OS: runtime.GOOS, Arch: runtime.GOARCH}
			registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.Path
				w.WriteHeader(x.status)
				_, _ = w.Write(x.answer) // the reader hangs up where it has seen enough
			}))
			defer registry.Close()
			folder := filepath.Join(t.TempDir(), "onnxruntime")
			path := write(t, filepath.Join(folder, fileName(runtime.GOOS)), "of before")
			from.Client, from.Registry = registry.Client(), registry.URL+"/npm/"
			_, err := from.Fetch(context.Background(), folder)
			if want := "/npm/onnxruntime-node/-/onnxruntime-node-" + Version + ".tgz"; asked != want {
				t.Errorf("it asked for %s, want %s", asked, want)
			}
			kept := "of before"
			if x.want == "" {
				kept = string(listed)
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), x.want) ||
				!strings.Contains(err.Error(), registry.URL) {
				t.Errorf("got %v, want %q and the address", err, x.want)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != kept {
				t.Errorf("the file has %q, %v, want %q", got, err, kept)
			}
			if x.want == "" {
				asked = ""
				if _, err := from.Fetch(context.Background(), folder); err != nil || asked != "" {
					t.Errorf("it was fetched again: %q, %v", asked, err)
				}
			}
			if left, err := filepath.Glob(filepath.Join(folder, ".*")); err != nil || len(left) > 0 {
				t.Errorf("%v is left, %v", left, err)
			}
		})
	}
}

// Every platform that releases bring the library for has a digest.
func TestDigests(t *testing.T) {
	for _, p := range [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}} {
		file, err := packaged(p[0], p[1])
		if err != nil {
			t.Fatal(err)
		}
		if sum, err := digest(file); err != nil || len(sum) != 64 {
			t.Errorf("%v: %q, %v", p, sum, err)
		}
	}
}

func TestConfiguredRegistry(t *testing.T) {
	const ours = "https://npm.example.com/"
	home := t.TempDir()
	write(t, filepath.Join(home, ".npmrc"),
		"# a note\n@scope:registry=https://other.example.com\nregistry = \""+ours+"\"\n")
	for _, x := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"nothing set", map[string]string{"HOME": t.TempDir()}, Registry},
		{"the file", map[string]string{"HOME": home}, ours},
		{"another file", map[string]string{"npm_config_userconfig": filepath.Join(home, ".npmrc")}, ours},
		{"the variable first", map[string]string{"HOME": home, "npm_config_registry": "http://a"}, "http://a"},
	} {
		if got := ConfiguredRegistry(env(x.env)); got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}
