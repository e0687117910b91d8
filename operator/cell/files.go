package cell

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// Files are the files of a cell's configuration by name: KeyConfig, KeyProfile, KeyMachines.
type Files map[string]string

// packed is the size from which the latencies are compressed: the API server takes a mebibyte in all, and people read
// smaller ones. mostUnpacked bounds what a compressed file may unpack to.
const (
	packed       = 128 << 10
	mostUnpacked = 64 << 20
)

// Put writes files to a ConfigMap. Latencies that are large are compressed and lie in its binary data.
func Put(files Files, m *corev1.ConfigMap) error {
	m.Data, m.BinaryData = map[string]string{}, nil
	for name, text := range files {
		if len(text) < packed || name != KeyProfile {
			m.Data[name] = text
			continue
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := io.WriteString(z, text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := z.Close(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if m.BinaryData == nil {
			m.BinaryData = map[string][]byte{}
		}
		m.BinaryData[name] = b.Bytes()
	}
	return nil
}

// Get reads what Put has written.
func Get(m *corev1.ConfigMap) (Files, error) {
	out := Files{}
	maps.Copy(out, m.Data)
	for name, data := range m.BinaryData {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s: %s: %w", m.Name, name, err)
		}
		text, err := io.ReadAll(io.LimitReader(z, mostUnpacked+1))
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s: %s: %w", m.Name, name, err)
		}
		if len(text) > mostUnpacked {
			return nil, fmt.Errorf("ConfigMap %s: %s unpacks to more than %d bytes", m.Name, name, mostUnpacked)
		}
		out[name] = string(text)
	}
	return out, nil
}
