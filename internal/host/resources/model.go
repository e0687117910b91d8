package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/serving"
)

// folderURI is the URI of a folder of this machine.
func folderURI(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// checkBase refuses places that models cannot be below of.
func checkBase(uri string) error {
	u, err := url.Parse(uri)
	if err != nil {
		return fault.Errorf(fault.Usage, "models are below pvc://CLAIM, https://HOST/PATH, s3://BUCKET or "+
			"file:///PATH: %w",
			err)
	}
	switch {
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil:
	case u.Scheme == "file" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
		return nil
	case (u.Scheme == "pvc" || u.Scheme == "https" || u.Scheme == "s3") && u.Host != "":
		return nil
	}
	return fault.Errorf(fault.Usage, "models are below pvc://CLAIM, https://HOST/PATH, s3://BUCKET or file:///PATH, "+
		"not %q",
		uri)
}

// model says where a variant's model is: the model's folder, or its file where only a file will do. why is not empty
// where it cannot be said.
func (e *exporter) model(id serving.VariantID) (m model, why string, err error) {
	b := &e.tables.Variants[id]
	base := strings.TrimSuffix(e.how.Models, "/") + "/" + url.PathEscape(b.Model)
	if b.Path == "" {
		if strings.HasPrefix(base, "https:") {
			return m, "a model from https needs its digest, and the model is not in a repository here", nil
		}
		e.note("models that no repository here has are taken to be below %s", e.how.Models)
		return model{URI: base}, "", nil
	}
	if strings.HasPrefix(base, "file:") {
		e.note("workers look for models in their own image, below %s: --models pvc://CLAIM/PATH has them look "+
			"elsewhere",
			e.how.Models)
	}
	pinned := e.pinned(id)
	if !pinned && !strings.HasPrefix(base, "https:") {
		return model{URI: base}, "", nil
	}
	entries, err := os.ReadDir(filepath.Dir(b.Path))
	if err != nil {
		return m, "", fmt.Errorf("model %s: %w", b.Model, err)
	}
	if len(entries) > 1 {
		return m, "its version has several files: pack them into an archive and name that by hand", nil
	}
	sum, err := digest(b.Path)
	if err != nil {
		return m, "", fmt.Errorf("model %s: %w", b.Model, err)
	}
	return model{URI: base + "/" + b.Version + "/" + url.PathEscape(filepath.Base(b.Path)), SHA256: sum}, "", nil
}

// pinned tells whether the file asks for a version of a model. A folder would stand for the highest.
func (e *exporter) pinned(id serving.VariantID) bool {
	st := &e.spec.Stages[e.spec.Variants[id].Stage]
	a := &e.file.Apps[st.App]
	of := a.Variants
	for i := range a.Stages {
		if a.Stages[i].Name == st.Name {
			of = a.Stages[i].Variants
		}
	}
	for j, v := range st.Variants {
		if v == id && j < len(of) {
			return of[j].Version != ""
		}
	}
	return false
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
