package fetch

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func digest(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

type file struct {
	name, text string
	link       bool
}

func tarOf(t *testing.T, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{
			Name: f.name, Mode: 0o644, Size: int64(len(f.text)), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}
		if f.link {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, f.text, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if !f.link {
			if _, err := w.Write([]byte(f.text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zipOf(t *testing.T, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		x, err := w.Create(f.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Write([]byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// listing is what lies below a folder, as NAME=TEXT.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		out = append(out, rel+"="+string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every kind of download becomes a model's folder of a repository, or an error and nothing.
func TestDownloads(t *testing.T) {
	model := file{name: "model.onnx", text: "weights"}
	tests := []struct {
		name string
		data []byte
		sum  string   // of the data where it is empty
		want []string // in the model's folder
		err  string   // part of a permanent error
	}{
		{name: "a file", data: []byte("weights"), want: []string{"1/model.onnx=weights"}},
		{name: "an archive of a file", data: gzipped(t, tarOf(t, model)), want: []string{"1/model.onnx=weights"}},
		{
			name: "a model's folder",
			data: tarOf(t, file{name: "3/model.onnx", text: "w"}, file{name: "config.pbtxt", text: "c"}),
			want: []string{"3/model.onnx=w", "config.pbtxt=c"},
		},
		{
			name: "a folder in it", data: zipOf(t, file{name: "resnet/2/model.onnx", text: "w"}),
			want: []string{"2/model.onnx=w"},
		},
		{
			name: "another name",
			data: zipOf(t, file{name: "resnet.onnx", text: "w"}, file{name: "resnet.bin", text: "b"}),
			want: []string{"1/model.onnx=w", "1/resnet.bin=b"},
		},
		{name: "a wrong digest", data: []byte("other"), sum: digest([]byte("weights")), err: "wrong digest"},
		{name: "no digest", data: []byte("other"), sum: "00", err: "64 hexadecimal digits"},
		{name: "a way out", data: tarOf(t, file{name: "../../evil", text: "x"}), err: "leads outside"},
		{name: "a whole path", data: tarOf(t, file{name: "/etc/evil", text: "x"}), err: "leads outside"},
		{name: "a way out in a zip", data: zipOf(t, file{name: "a/../../evil", text: "x"}), err: "leads outside"},
		{
			name: "a link",
			data: tarOf(t, file{name: "out", text: "/etc", link: true}, file{name: "out/evil", text: "x"}),
			err:  "neither a file nor a folder",
		},
		{name: "a bomb", data: gzipped(t, tarOf(t, file{name: "m", text: strings.Repeat("0", 1<<20)})), err: "larger"},
		{name: "a broken archive", data: gzipped(t, []byte("no tar")), err: "cannot be read"},
		{name: "nothing", data: gzipped(t, tarOf(t)), err: "there is nothing in it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(tt.data)
			}))
			defer s.Close()
			if tt.sum == "" {
				tt.sum = digest(tt.data)
			}
			repo := t.TempDir()
			f := New(Config{Bytes: 1 << 16, Transport: s.Client().Transport})
			err := f.Fetch(t.Context(), "m", Model{URI: s.URL + "/some/file", SHA256: tt.sum}, repo)
			if tt.err != "" {
				var p *Permanent
				if !errors.As(err, &p) || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("the error is %v, want a permanent one with %q", err, tt.err)
				}
				if left := listing(t, repo); len(left) > 0 {
					t.Errorf("after the error there is %v", left)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if is := listing(t, filepath.Join(repo, "m")); !slices.Equal(is, tt.want) {
				t.Errorf("the model is %v, want %v", is, tt.want)
			}
		})
	}
}

func TestServersAnswers(t *testing.T) {
	data := []byte("weights")
	var asked atomic.Int32
	var authorization atomic.Value
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/flaky":
			if asked.Add(1) == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			authorization.Store(r.Header.Get("Authorization"))
			_, _ = w.Write(data)
		case "/plain":
			http.Redirect(w, r, "http://127.0.0.1:1/x", http.StatusFound)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer s.Close()
	secrets := t.TempDir()
	if err := os.MkdirAll(filepath.Join(secrets, "keys"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(secrets, "keys", "token"), []byte("hidden\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := New(Config{Secrets: secrets, Transport: s.Client().Transport, Tries: 2})
	repo := t.TempDir()
	get := func(name, path string) error {
		return f.Fetch(t.Context(), name, Model{URI: s.URL + path, SHA256: digest(data), Secret: "keys"}, repo)
	}
	if err := get("flaky", "/flaky"); err != nil || authorization.Load() != "Bearer hidden" {
		t.Errorf("%v, with authorization %v", err, authorization.Load())
	}
	for path, want := range map[string]string{"/gone": "404", "/plain": "not encrypted"} {
		if err := get("m", path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q in it", path, err, want)
		} else if strings.Contains(err.Error(), "hidden") {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
}

func TestFilesAndVolumes(t *testing.T) {
	claims, repo := t.TempDir(), t.TempDir()
	folder := filepath.Join(claims, "models", "a", "1")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "model.onnx"), []byte("w"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(claims, "secret"), []byte("s"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../secret", filepath.Join(claims, "models", "out")); err != nil {
		t.Fatal(err)
	}
	f := New(Config{Claims: claims, Tries: 1})
	if err := f.Fetch(t.Context(), "a", Model{URI: "pvc://models/a"}, repo); err != nil {
		t.Error(err)
	}
	if is := listing(t, filepath.Join(repo, "a")); !slices.Equal(is, []string{"1/model.onnx=w"}) {
		t.Errorf("the model is %v", is)
	}
	file := Model{URI: "file://" + filepath.Join(folder, "model.onnx"), SHA256: digest([]byte("w"))}
	if err := f.Fetch(t.Context(), "b", file, repo); err != nil {
		t.Error(err)
	}
	for _, uri := range []string{
		"pvc://models/out", "pvc://models/../secret", "pvc://../models", "pvc://nothing/a", "pvc:///x", "file://host/x",
		"ftp://x/y", "pvc://models/none", ":",
	} {
		if err := f.Fetch(t.Context(), "c", Model{URI: uri}, repo); err == nil {
			t.Errorf("%s was fetched", uri)
		}
	}
	if err := f.Fetch(t.Context(), "../c", Model{URI: "pvc://models/a"}, repo); err == nil {
		t.Error("a model was put outside of the repository")
	}
}

func opener(b []byte) tarball.Opener {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}

func TestImages(t *testing.T) {
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer s.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	push := func(img v1.Image, repo string) string {
		t.Helper()
		ref, err := name.ParseReference(host+"/"+repo+":latest", name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, img); err != nil {
			t.Fatal(err)
		}
		d, err := img.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return "oci://" + host + "/" + repo + "@" + d.String()
	}
	layer, err := tarball.LayerFromOpener(opener(tarOf(t,
		file{name: "models/1/model.onnx", text: "w"}, file{name: "bin/sh", text: "x"},
		file{name: "lib", text: "usr/lib", link: true})))
	if err != nil {
		t.Fatal(err)
	}
	car, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	artifact, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer:       static.NewLayer([]byte("w"), types.MediaType("application/octet-stream")),
		Annotations: map[string]string{titleAnnotation: "model.onnx"},
	})
	if err != nil {
		t.Fatal(err)
	}
	repo := t.TempDir()
	f := New(Config{Insecure: true, Tries: 1})
	for kind, uri := range map[string]string{"car": push(car, "car"), "artifact": push(artifact, "artifact")} {
		if err := f.Fetch(t.Context(), kind, Model{URI: uri}, repo); err != nil {
			t.Error(err)
			continue
		}
		if is := listing(t, filepath.Join(repo, kind)); !slices.Equal(is, []string{"1/model.onnx=w"}) {
			t.Errorf("%s is %v", kind, is)
		}
	}
	missing := "oci://" + host + "/car@sha256:" + strings.Repeat("0", 64)
	for _, uri := range []string{missing, "oci://" + host + "/car:latest", "oci://" + host + "/car"} {
		var p *Permanent
		if err := f.Fetch(t.Context(), "x", Model{URI: uri}, repo); !errors.As(err, &p) {
			t.Errorf("%s: the error is %v, want a permanent one", uri, err)
		}
	}
}

func TestObjectStore(t *testing.T) {
	objects := map[string]string{"/models/a/1/model.onnx": "w", "/models/a/config.pbtxt": "c", "/models/b.onnx": "b"}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=id/") {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
			return
		}
		if r.URL.Query().Get("list-type") == "2" {
			fmt.Fprint(w, "<ListBucketResult><IsTruncated>false</IsTruncated>")
			for k, v := range objects {
				if key := strings.TrimPrefix(k, "/models/"); strings.HasPrefix(key, r.URL.Query().Get("prefix")) {
					fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>%d</Size></Contents>", key, len(v))
				}
			}
			fmt.Fprint(w, "</ListBucketResult>")
			return
		}
		text, ok := objects[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<Error><Code>NoSuchKey</Code><Message>none</Message></Error>")
			return
		}
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		w.Header().Set("ETag", strconv.Quote("x"))
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		fmt.Fprint(w, text)
	}))
	defer s.Close()
	secrets := t.TempDir()
	if err := os.MkdirAll(filepath.Join(secrets, "keys"), 0o755); err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_ENDPOINT_URL": s.URL, "AWS_REGION": "here",
	} {
		if err := os.WriteFile(filepath.Join(secrets, "keys", k), []byte(v), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repo := t.TempDir()
	f := New(Config{Secrets: secrets, Insecure: true, Tries: 1})
	for uri, want := range map[string][]string{
		"s3://models/a/":     {"1/model.onnx=w", "config.pbtxt=c"},
		"s3://models/b.onnx": {"1/model.onnx=b"},
	} {
		to := strings.NewReplacer(":", "", "/", "").Replace(uri)
		if err := f.Fetch(t.Context(), to, Model{URI: uri, Secret: "keys"}, repo); err != nil {
			t.Error(err)
			continue
		}
		if is := listing(t, filepath.Join(repo, to)); !slices.Equal(is, want) {
			t.Errorf("%s is %v, want %v", uri, is, want)
		}
	}
	var p *Permanent
	if err := f.Fetch(t.Context(), "x", Model{URI: "s3://models/none", Secret: "keys"}, repo); !errors.As(err, &p) {
		t.Errorf("the error is %v, want a permanent one", err)
	}
}

// Workers of a machine share what was downloaded, and download it once.
func TestCache(t *testing.T) {
	data := []byte("weights")
	var asked atomic.Int32
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write(data)
	}))
	defer s.Close()
	cache := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		repo := t.TempDir()
		all.Go(func() {
			f := New(Config{Cache: cache, CacheBytes: 10, Transport: s.Client().Transport})
			if err := f.Fetch(t.Context(), "m", Model{URI: s.URL, SHA256: digest(data)}, repo); err != nil {
				t.Error(err)
			} else if is := listing(t, filepath.Join(repo, "m")); !slices.Equal(is, []string{"1/model.onnx=weights"}) {
				t.Errorf("the model is %v", is)
			}
		})
	}
	all.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("it was downloaded %d times", n)
	}
	data = []byte("another")
	f := New(Config{Cache: cache, CacheBytes: 10, Transport: s.Client().Transport})
	if err := f.Fetch(t.Context(), "n", Model{URI: s.URL, SHA256: digest(data)}, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	kept, _ := filepath.Glob(filepath.Join(cache, "sha256-*"))
	if len(kept) != 1 || !strings.HasSuffix(kept[0], digest(data)) {
		t.Errorf("of 10 bytes, the cache keeps %v", kept)
	}
}
