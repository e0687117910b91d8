package fetch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// cached takes a model from the cache of this machine, which it is put into first. Processes that want the same model
// wait for the one that fetches it.
func (f *Fetcher) cached(ctx context.Context, name string, m Model, key, repo string) error {
	if err := os.MkdirAll(f.c.Cache, 0o755); err != nil {
		return err
	}
	entry := "sha256-" + key
	unlock, err := lock(ctx, filepath.Join(f.c.Cache, "."+entry+".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	at := filepath.Join(f.c.Cache, entry)
	if _, err := os.Stat(at); errors.Is(err, fs.ErrNotExist) {
		if err := f.into(ctx, entry, m, f.c.Cache); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	now := time.Now()
	_ = os.Chtimes(at, now, now) // the last use; a cache that is read-only keeps its order
	temp, err := os.MkdirTemp(repo, ".fetch-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	made := filepath.Join(temp, "model")
	if err := linkTree(at, made); err != nil {
		return err
	}
	if err := moveTo(made, filepath.Join(repo, name)); err != nil {
		return err
	}
	return f.trim(entry)
}

// lockEvery is the time between two tries to get a lock that another process has.
const lockEvery = 200 * time.Millisecond

// lock waits until no other process has the lock of a file.
func lock(ctx context.Context, file string) (unlock func(), err error) {
	l, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(l.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = l.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(err, l.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), l.Close())
		case <-time.After(lockEvery):
		}
	}
}

// linkTree makes a copy of a folder whose files are links to the same content, where the file system allows that.
func linkTree(from, to string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		out := filepath.Join(to, rel)
		if d.IsDir() {
			return os.Mkdir(out, 0o755)
		}
		if os.Link(p, out) == nil {
			return nil
		}
		return copyFile(p, out)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// trim removes the models that were not used for longest from a cache that is too large, but not the one just used.
func (f *Fetcher) trim(used string) error {
	if f.c.CacheBytes <= 0 {
		return nil
	}
	type entry struct {
		name  string
		at    time.Time
		bytes int64
	}
	var all []entry
	total := int64(0)
	names, err := filepath.Glob(filepath.Join(f.c.Cache, "sha256-*"))
	if err != nil {
		return err
	}
	for _, n := range names {
		e := entry{name: n}
		if st, err := os.Stat(n); err == nil {
			e.at = st.ModTime()
		}
		_ = filepath.WalkDir(n, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if st, err := d.Info(); err == nil {
					e.bytes += st.Size()
				}
			}
			return nil
		})
		total += e.bytes
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b entry) int { return a.at.Compare(b.at) })
	for _, e := range all {
		if total <= f.c.CacheBytes {
			return nil
		}
		if filepath.Base(e.name) == used {
			continue
		}
		// Files that models in use share with it stay until those go.
		if err := os.RemoveAll(e.name); err != nil {
			return err
		}
		total -= e.bytes
	}
	return nil
}
