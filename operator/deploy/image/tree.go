package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// tree is what a layer holds, by path without a leading slash.
type tree map[string]entry

// entry is a file or a folder.
type entry struct {
	from string // file of this machine; empty for the others
	text string // content where from is empty
	dir  bool
	mode fs.FileMode
}

func (t tree) file(at, from string, mode fs.FileMode) { t[clean(at)] = entry{from: from, mode: mode} }
func (t tree) text(at, text string)                   { t[clean(at)] = entry{text: text, mode: 0o644} }
func (t tree) dir(at string, mode fs.FileMode)        { t[clean(at)] = entry{dir: true, mode: mode} }

func clean(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }

// tar writes the tree: folders before what is in them, everything of user 0 and of one time.
func (t tree) tar(at time.Time) ([]byte, error) {
	for p := range t {
		for up := path.Dir(p); up != "."; up = path.Dir(up) {
			if _, ok := t[up]; !ok {
				t.dir(up, 0o755)
			}
		}
	}
	paths := make([]string, 0, len(t))
	for p := range t {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, p := range paths {
		if err := t[p].write(w, p, at); err != nil {
			return nil, fmt.Errorf("image: %s: %w", p, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (e entry) write(w *tar.Writer, p string, at time.Time) error {
	h := &tar.Header{Name: p, Mode: int64(e.mode.Perm()), ModTime: at, Format: tar.FormatPAX, Typeflag: tar.TypeReg}
	if e.mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	var in io.Reader = strings.NewReader(e.text)
	switch {
	case e.dir:
		h.Typeflag, h.Name = tar.TypeDir, p+"/"
	case e.from != "":
		f, err := os.Open(e.from)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		st, err := f.Stat()
		if err != nil {
			return err
		}
		if !st.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file", e.from)
		}
		h.Size, in = st.Size(), f
	default:
		h.Size = int64(len(e.text))
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(w, in)
	return err
}
