package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// Helm reads the archive, which has the version and every file of the folder; a registry's client reads the layout,
// whose layer is the archive. Both are the same twice.
func TestChart(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	archive, oci, err := Chart("../chart", "1.2.3", at)
	if err != nil {
		t.Fatal(err)
	}
	again, ociAgain, err := Chart("../chart", "1.2.3", at)
	if err != nil || !bytes.Equal(archive, again) || !bytes.Equal(oci, ociAgain) {
		t.Errorf("two charts of the same files differ: %v", err)
	}
	c, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	folder, err := loader.LoadDir("../chart")
	if err != nil {
		t.Fatal(err)
	}
	if c.Metadata.Version != "1.2.3" || c.Metadata.AppVersion != "1.2.3" || len(c.Raw) != len(folder.Raw) ||
		len(c.Templates) != len(folder.Templates) {
		t.Errorf("%+v with %d files, %d in the folder", c.Metadata, len(c.Raw), len(folder.Raw))
	}
	if _, _, err := Chart("../chart", "one", at); err == nil {
		t.Error("a version that helm refuses is taken")
	}

	index, err := layout.ImageIndexFromPath(untar(t, oci))
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil || len(m.Manifests) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	img, err := index.Image(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%v, %v", layers, err)
	}
	r, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, archive) {
		t.Errorf("the layer is not the archive: %d bytes, %v", len(got), err)
	}
}

func untar(t *testing.T, text []byte) string {
	t.Helper()
	dir := t.TempDir()
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, fs.FileMode(0o755))
		} else {
			var content []byte
			if content, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, content, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
