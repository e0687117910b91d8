package fetch

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
	"strings"
)

// unpack puts a downloaded file into the tree: the files of an archive (tar, tar.gz, zip), else the file itself under a
// name.
func (t *tree) unpack(file, name string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	}
	head = head[:n]
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(bufio.NewReader(f))
		if err != nil {
			return permanent("the archive cannot be read: %w", err)
		}
		return t.untar(z, false)
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return t.unzip(f)
	case n >= 262 && bytes.Equal(head[257:262], []byte("ustar")):
		return t.untar(f, false)
	}
	return t.add(name, f)
}

// untar writes the files of an archive. Links are errors, or passed over as in the file systems of images.
func (t *tree) untar(from io.Reader, passLinks bool) error {
	r := tar.NewReader(from)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return permanent("the archive cannot be read: %w", err)
		}
		switch h.Typeflag {
		case tar.TypeReg:
			if err := t.add(strings.TrimPrefix(h.Name, "./"), r); err != nil {
				return err
			}
		case tar.TypeDir, tar.TypeXGlobalHeader:
		default:
			if !passLinks {
				return permanent("the archive holds %.200q, which is neither a file nor a folder", h.Name)
			}
		}
	}
}

func (t *tree) unzip(f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	r, err := zip.NewReader(f, st.Size())
	if err != nil {
		return permanent("the archive cannot be read: %w", err)
	}
	for _, x := range r.File {
		switch {
		case x.FileInfo().IsDir():
			continue
		case !x.FileInfo().Mode().IsRegular():
			return permanent("the archive holds %.200q, which is neither a file nor a folder", x.Name)
		}
		from, err := x.Open()
		if err != nil {
			return permanent("the archive cannot be read: %w", err)
		}
		err = t.add(x.Name, from)
		_ = from.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// download writes a stream into a file, up to most bytes, and checks its digest; "" checks none.
func download(from io.Reader, file, digest string, most int64) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(from, most+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if n > most {
		return permanent("the file is larger than is taken")
	}
	if is := hex.EncodeToString(sum.Sum(nil)); digest != "" && is != digest {
		return permanent("wrong digest: sha256 is %s, want %s", is, digest)
	}
	return nil
}

// fileName is the name of a download that is no archive.
func fileName(p string) string {
	if base := path.Base(p); base != "." && base != "/" && base != "" {
		return base
	}
	return "model.onnx"
}
