package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"go.etcd.io/bbolt"
)

// checksum is the form of a SHA-256 sum. It has no characters with a meaning in paths.
var checksum = regexp.MustCompile(`^[0-9a-f]{64}$`)

const (
	modelEnding  = ".onnx"
	uploadPrefix = ".upload-"
)

// ErrTooLarge means that a model has more bytes than the limit, ErrSum that its content does not have its checksum.
var (
	ErrTooLarge = errors.New("the model has more bytes than are taken")
	ErrSum      = errors.New("the model's content does not have the checksum that was announced")
)

// ModelPath returns the path of the model with a checksum, which need not exist.
func (f *Functions) ModelPath(sum string) string {
	if !checksum.MatchString(sum) {
		return filepath.Join(f.dir, modelsFolder, "none") // no model has this name
	}
	return filepath.Join(f.dir, modelsFolder, sum+modelEnding)
}

// HasModel reports whether the model with a checksum is stored.
func (f *Functions) HasModel(sum string) bool {
	_, err := os.Stat(f.ModelPath(sum))
	return checksum.MatchString(sum) && err == nil
}

// PutModel stores a model of at most limit bytes. The file appears completely when PutModel returns nil, and not
// before.
func (f *Functions) PutModel(sum string, r io.Reader, limit int64) (err error) {
	if !checksum.MatchString(sum) {
		return fmt.Errorf("store: %.80q is no SHA-256 sum in hexadecimal", sum)
	}
	folder := filepath.Join(f.dir, modelsFolder)
	to, err := os.CreateTemp(folder, uploadPrefix+"*")
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer func() { _ = os.Remove(to.Name()) }()
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, h), io.LimitReader(r, limit+1))
	switch {
	case err != nil:
	case n > limit:
		err = ErrTooLarge
	case hex.EncodeToString(h.Sum(nil)) != sum:
		err = ErrSum
	default:
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	if err := f.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(modelTable).Put([]byte(sum), nil) }); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := os.Rename(to.Name(), f.ModelPath(sum)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return syncFolder(folder)
}

// CheckModel reads a model again and returns an error unless its size and checksum are as recorded.
func (f *Functions) CheckModel(m Model) error {
	file, err := os.Open(f.ModelPath(m.SHA256))
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer file.Close()
	h := sha256.New()
	n, err := io.Copy(h, file)
	if err == nil && (n != m.Bytes || hex.EncodeToString(h.Sum(nil)) != m.SHA256) {
		err = ErrSum
	}
	if err != nil {
		return fmt.Errorf("store: model %s: %w", m.SHA256, err)
	}
	return nil
}

// removeUnused removes interrupted uploads and models that no function uses: those of interrupted deployments, and of
// functions that were deleted or replaced. It touches no model that is not on its own list: an empty or lost registry
// says nothing about the files beside it.
func (f *Functions) removeUnused() error {
	list, err := f.List()
	if err != nil {
		return err
	}
	wanted := make(map[string]bool)
	for _, x := range list {
		wanted[x.Model.SHA256] = true
	}
	var unused []string
	err = f.db.Update(func(tx *bbolt.Tx) error {
		table := tx.Bucket(modelTable)
		for sum := range wanted { // of registries from before the list
			if err := table.Put([]byte(sum), nil); err != nil {
				return err
			}
		}
		return table.ForEach(func(sum, _ []byte) error {
			if !wanted[string(sum)] && checksum.Match(sum) {
				unused = append(unused, string(sum))
			}
			return nil
		})
	})
	for _, sum := range unused {
		if gone := os.Remove(f.ModelPath(sum)); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
			continue
		}
		err = errors.Join(err, f.db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket(modelTable).Delete([]byte(sum))
		}))
	}
	uploads, failed := filepath.Glob(filepath.Join(f.dir, modelsFolder, uploadPrefix+"*"))
	err = errors.Join(err, failed)
	for _, path := range uploads {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// syncFolder makes renames in a folder durable.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// Size returns the bytes of a stored model.
func (f *Functions) Size(sum string) (int64, error) {
	st, err := os.Stat(f.ModelPath(sum))
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	return st.Size(), nil
}
