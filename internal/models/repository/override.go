package repository

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"

	"github.com/sluice-serving/sluice/internal/models/repository/pb"
)

// Override has a model read with another configuration than that of its config.pbtxt. It must be called before the
// model is read, and not concurrently with other methods.
func (r *Repository) Override(name string, c *pb.ModelConfig) {
	if r.overrides == nil {
		r.overrides = make(map[string]*pb.ModelConfig)
	}
	r.overrides[name] = c
}

// Whole has a model without a max_batch_size of its own read as one without a batch dimension, whatever its shapes say.
// It must be called before the model is read, and not concurrently with other methods.
func (r *Repository) Whole(name string) {
	if r.whole == nil {
		r.whole = make(map[string]bool)
	}
	r.whole[name] = true
}

// Fingerprint returns a text that changes when a file of a model is added, removed or written. It is made of names,
// sizes and times, so that large files are not read. Links are not followed further than the root allows. The error
// wraps ErrNotFound when there is no such model.
func (r *Repository) Fingerprint(name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	if st, err := r.root.Stat(name); err != nil || !st.IsDir() {
		return "", fmt.Errorf("model %q: %w in %s", name, ErrNotFound, r.dir)
	}
	h := sha256.New()
	if err := r.fingerprint(h, name, 0); err != nil {
		return "", fmt.Errorf("model %q: %w", name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// maxDepth bounds how deep the folders of a model lie in each other: a link may lead to a folder above it.
const maxDepth = 8

func (r *Repository) fingerprint(to interface{ Write([]byte) (int, error) }, dir string, depth int) error {
	names, err := r.list(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		at := path.Join(dir, name)
		st, err := r.root.Stat(at)
		switch {
		case err != nil:
			fmt.Fprintln(to, at, "unreadable")
		case st.Mode().IsRegular():
			fmt.Fprintln(to, at, st.Size(), st.ModTime().UnixNano())
		case st.Mode()&fs.ModeDir != 0:
			fmt.Fprintln(to, at)
			if depth < maxDepth {
				if err := r.fingerprint(to, at, depth+1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
