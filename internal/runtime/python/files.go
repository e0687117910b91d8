package python

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	worker "github.com/sluice-serving/sluice/python"
)

// unpacked has the folder of the worker's files, by the folder that it lies in.
var unpacked struct {
	sync.Mutex
	folders map[string]string
}

// workerFolder returns a folder with the package sluice_worker in it. Its name is a hash of the files, so that programs
// of two versions share nothing. A file that was changed is written again.
func workerFolder(in string) (string, error) {
	unpacked.Lock()
	defer unpacked.Unlock()
	if known := unpacked.folders[in]; known != "" {
		if _, err := os.Stat(filepath.Join(known, "sluice_worker", "channel.py")); err == nil {
			return known, nil
		}
	}
	below := in
	if below == "" {
		cache, err := os.UserCacheDir()
		if err == nil {
			below = filepath.Join(cache, "sluice", "worker")
			err = os.MkdirAll(below, 0o700)
		}
		if err != nil {
			if below, err = os.MkdirTemp("", "sluice-worker-"); err != nil {
				return "", fmt.Errorf("python: the worker's files: %w", err)
			}
		}
	}
	files, sum := map[string][]byte{}, sha256.New()
	err := fs.WalkDir(worker.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := worker.Files.ReadFile(path)
		files[path] = data
		fmt.Fprintf(sum, "%s %d\n", path, len(data))
		_, _ = sum.Write(data)
		return err
	})
	folder := filepath.Join(below, hex.EncodeToString(sum.Sum(nil))[:16])
	if err == nil {
		err = writeFiles(folder, files)
	}
	if err != nil {
		return "", fmt.Errorf("python: the worker's files: %w", err)
	}
	if unpacked.folders == nil {
		unpacked.folders = make(map[string]string)
	}
	unpacked.folders[in] = folder
	return folder, nil
}

// writeFiles writes files, each in whole, where they are not there already.
func writeFiles(folder string, files map[string][]byte) error {
	for path, data := range files { // any order
		to := filepath.Join(folder, path)
		if old, err := os.ReadFile(to); err == nil && bytes.Equal(old, data) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		f, err := os.CreateTemp(filepath.Dir(to), ".new-*")
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		if closing := f.Close(); err == nil {
			err = closing
		}
		if err == nil {
			err = os.Rename(f.Name(), to)
		}
		if err != nil {
			_ = os.Remove(f.Name())
			return err
		}
	}
	return nil
}
