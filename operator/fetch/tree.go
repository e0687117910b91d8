package fetch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tree is a folder that a model is written into, up to a size and a number of files. Nothing is written outside of it.
type tree struct {
	dir   string
	root  *os.Root
	bytes int64 // that may still be written
	files int
}

func newTree(dir string, bytes int64, files int) (*tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &tree{dir: dir, root: root, bytes: bytes, files: files}, nil
}

func (t *tree) close() { _ = t.root.Close() }

// clean returns a name of an archive as a path inside the tree.
func clean(name string) (string, error) {
	if strings.Contains(name, "\\") || path.IsAbs(name) {
		return "", permanent("the name %.200q leads outside of the model", name)
	}
	out := path.Clean(name)
	if out == ".." || strings.HasPrefix(out, "../") || !filepath.IsLocal(out) {
		return "", permanent("the name %.200q leads outside of the model", name)
	}
	return out, nil
}

// add writes a file.
func (t *tree) add(name string, from io.Reader) error {
	name, err := clean(name)
	if err != nil {
		return err
	}
	if t.files--; t.files < 0 {
		return permanent("the model has more files than are taken")
	}
	if dir := path.Dir(name); dir != "." {
		if err := t.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	f, err := t.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(from, t.bytes+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if t.bytes -= n; t.bytes < 0 {
		return permanent("the model is larger than is taken")
	}
	return nil
}

// copyOf writes what lies at a path of a folder: a file, or a folder with all in it. Links that lead out of the folder
// are errors.
func (t *tree) copyOf(from *os.Root, at string) error {
	return fs.WalkDir(from.FS(), at, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := from.Stat(p) // follows links, inside of the folder
		if err != nil {
			return err
		}
		if !st.Mode().IsRegular() {
			return nil
		}
		rel, err := filepath.Rel(at, p)
		if err != nil {
			return err
		}
		if rel == "." {
			rel = path.Base(p)
		}
		f, err := from.Open(p)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		return t.add(filepath.ToSlash(rel), f)
	})
}

// arrange makes a model's folder of a repository of what the tree holds, and returns it: NAME/VERSION/FILE. A tree that
// is one already is taken as it is, one folder in it stands for the tree, and files without a version are version 1.
func (t *tree) arrange(to string) (string, error) {
	dir := t.dir
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return "", err
		}
		if len(entries) == 0 {
			return "", permanent("there is nothing in it")
		}
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() && isVersion(e.Name()) }) ||
			slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "config.pbtxt" }) {
			return dir, nil
		}
		if len(entries) == 1 && entries[0].IsDir() {
			dir = filepath.Join(dir, entries[0].Name())
			continue
		}
		if err := os.Mkdir(to, 0o755); err != nil {
			return "", err
		}
		version := filepath.Join(to, "1")
		if err := os.Rename(dir, version); err != nil {
			return "", err
		}
		return to, only(version, entries)
	}
}

// only gives the one model file of a version the name by which it is found.
func only(version string, entries []fs.DirEntry) error {
	for ending, name := range map[string]string{".onnx": "model.onnx", ".py": "model.py"} {
		var found []string
		for _, e := range entries {
			if e.Name() == name {
				return nil
			}
			if filepath.Ext(e.Name()) == ending {
				found = append(found, e.Name())
			}
		}
		if len(found) == 1 {
			return os.Rename(filepath.Join(version, found[0]), filepath.Join(version, name))
		}
	}
	if len(entries) == 1 && !entries[0].IsDir() { // a download without an ending
		return os.Rename(filepath.Join(version, entries[0].Name()), filepath.Join(version, "model.onnx"))
	}
	return nil
}

func isVersion(name string) bool {
	n, err := strconv.ParseInt(name, 10, 64)
	return err == nil && n >= 0
}
