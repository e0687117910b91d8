package image

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"
)

// Chart packs the chart in a folder as a version whose image has the same tag: as the archive that helm installs, and
// as an OCI layout in a tar, for a registry. Equal files give equal bytes, which `helm package` does not promise.
func Chart(folder, version string, at time.Time) (archive, oci []byte, err error) {
	c, err := loader.LoadDir(folder)
	if err != nil {
		return nil, nil, fmt.Errorf("image: chart: %w", err)
	}
	c.Metadata.Version, c.Metadata.AppVersion = version, version
	if err := c.Validate(); err != nil {
		return nil, nil, fmt.Errorf("image: chart: %w", err)
	}
	files := tree{}
	for _, f := range c.Raw {
		files.text(c.Name()+"/"+f.Name, string(f.Data))
	}
	about, err := yaml.Marshal(c.Metadata)
	if err != nil {
		return nil, nil, err
	}
	files.text(c.Name()+"/"+chartutil.ChartfileName, string(about))
	plain, err := files.tar(at)
	if err != nil {
		return nil, nil, err
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(plain); err != nil {
		return nil, nil, err
	}
	if err := z.Close(); err != nil {
		return nil, nil, err
	}
	config, err := json.Marshal(c.Metadata)
	if err != nil {
		return nil, nil, err
	}
	oci, err = artifact(config, zipped.Bytes(), version, at)
	return zipped.Bytes(), oci, err
}

// descriptor points to a blob of an OCI layout.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// artifact is an OCI layout, in a tar, of what helm pushes to a registry for a chart.
func artifact(config, chart []byte, version string, at time.Time) ([]byte, error) {
	files := tree{}
	files.text("oci-layout", `{"imageLayoutVersion":"1.0.0"}`)
	blob := func(mediaType string, content []byte) descriptor {
		sum := fmt.Sprintf("%x", sha256.Sum256(content))
		files.text("blobs/sha256/"+sum, string(content))
		return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(content)}
	}
	const manifestType = "application/vnd.oci.image.manifest.v1+json"
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": blob("application/vnd.cncf.helm.config.v1+json", config),
		"layers": []descriptor{blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", chart)},
	})
	if err != nil {
		return nil, err
	}
	listed := blob(manifestType, manifest)
	listed.Annotations = map[string]string{"org.opencontainers.image.ref.name": version}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{listed}})
	if err != nil {
		return nil, err
	}
	files.text("index.json", string(index))
	return files.tar(at)
}
