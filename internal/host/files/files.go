// Package files reads files up to a size, and writes files completely or not at all.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sluice-serving/sluice/internal/host/fault"
)

// Read returns the text of a file of at most limit bytes, without the byte order mark that some editors put before it.
// An error is of kind fault.Config and names the file.
func Read(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	if int64(len(data)) > limit {
		return nil, fault.Errorf(fault.Config, "%s is larger than %d bytes", path, limit)
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

// Writable returns why no file can be made in a folder; nil when one can.
func Writable(folder string) error {
	f, err := os.CreateTemp(folder, ".sluice-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Write makes a file, or replaces one, with the content that write writes. When it fails, an existing file is
// unchanged.
func Write(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".sluice-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err = write(f); err == nil {
		err = f.Chmod(0o644)
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}
