package image

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// User is who the programs run as: the number that images without root agree on.
const User = 65532

// Contents names the files of this machine that go into the image. All but Version and Sysroot are needed.
type Contents struct {
	Sluice      string // program `sluice`
	Operator    string // program `sluice-operator`
	ONNXRuntime string // libonnxruntime
	// Authorities is a file of PEM certificates, for models that are fetched over TLS.
	Authorities string
	// Sysroot is where the C libraries of another kind of machine are; empty for those of this one.
	Sysroot string
	// Version is put into the image's labels.
	Version string
	// Created is the time of everything in it. Zero is the beginning of 1970, so that only contents count.
	Created time.Time
}

// The places in the image.
const (
	binaries  = "/usr/local/bin/"
	libraries = "/usr/local/lib/sluice/"
)

// Build makes the image. Libraries that rarely change are in a layer below the programs.
func Build(c Contents) (v1.Image, error) {
	base, programs := tree{}, tree{}
	arch, err := architecture(c.Sluice)
	if err != nil {
		return nil, err
	}
	if err := base.libraries(c.Sysroot, c.Sluice, c.Operator, c.ONNXRuntime); err != nil {
		return nil, err
	}
	base.text("/etc/passwd", fmt.Sprintf("root:x:0:0:root:/root:/sbin/nologin\nsluice:x:%d:%d:sluice:/home/sluice:"+
		"/sbin/nologin\n", User, User))
	base.text("/etc/group", fmt.Sprintf("root:x:0:\nsluice:x:%d:\n", User))
	base.text("/etc/nsswitch.conf", "hosts: files dns\n")
	base.file("/etc/ssl/certs/ca-certificates.crt", c.Authorities, 0o644)
	base.dir("/tmp", 0o777|os.ModeSticky)
	base.dir("/home/sluice", 0o755)
	base.dir("/models", 0o755)
	base.file(libraries+"libonnxruntime.so.1", c.ONNXRuntime, 0o755)
	programs.file(binaries+"sluice", c.Sluice, 0o755)
	programs.file(binaries+"sluice-operator", c.Operator, 0o755)

	at := c.Created.UTC()
	if c.Created.IsZero() {
		at = time.Unix(0, 0).UTC()
	}
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	for _, t := range []tree{base, programs} {
		layer, err := layerOf(t, at)
		if err != nil {
			return nil, err
		}
		if img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{
			Created: v1.Time{Time: at}, CreatedBy: "sluice/operator/deploy/image"}}); err != nil {
			return nil, err
		}
	}
	old, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config := old.DeepCopy()
	config.Created, config.OS, config.Architecture = v1.Time{Time: at}, "linux", arch
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", User, User), WorkingDir: "/home/sluice",
		Entrypoint: []string{binaries + "sluice"},
		Env:        []string{"PATH=/usr/local/bin", "HOME=/home/sluice"},
		Labels: map[string]string{
			"org.opencontainers.image.title": "sluice", "org.opencontainers.image.version": c.Version,
			"org.opencontainers.image.description": "serves machine-learning models under latency objectives",
		},
	}
	return mutate.ConfigFile(img, config)
}

func layerOf(t tree, at time.Time) (v1.Layer, error) {
	text, err := t.tar(at)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text)), nil
	}, tarball.WithMediaType(types.OCILayer))
}
