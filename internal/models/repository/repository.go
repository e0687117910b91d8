package repository

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

	"github.com/sluice-serving/sluice/internal/models/repository/pb"
)

// Bounds on what is read from a repository.
const (
	MaxConfigBytes = 1 << 20 // of a config.pbtxt
	maxEntries     = 10_000  // of one directory
)

// ErrNotFound is wrapped by errors about a model, version or file that is not there.
var ErrNotFound = errors.New("not found")

// Repository is an open model repository. Its methods may be called concurrently.
type Repository struct {
	root *os.Root
	dir  string // the root, absolute and without links

	overrides map[string]*pb.ModelConfig // by model; they take the place of its config.pbtxt
	whole     map[string]bool            // by model: it has no batch dimension unless its configuration says so
}

// Open opens the repository at dir. Close releases it.
func Open(dir string) (*Repository, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("model repository %s: %w", dir, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, fmt.Errorf("model repository %s: %w", dir, err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("model repository %s: %w", dir, err)
	}
	return &Repository{root: root, dir: real}, nil
}

// Close releases the repository's directory handle.
func (r *Repository) Close() error { return r.root.Close() }

// Dir returns the absolute path of the repository.
func (r *Repository) Dir() string { return r.dir }

// Names lists the models: every directory of the root that does not begin with a dot, sorted.
func (r *Repository) Names() ([]string, error) {
	entries, err := r.list(".")
	if err != nil {
		return nil, fmt.Errorf("model repository %s: %w", r.dir, err)
	}
	var names []string
	for _, name := range entries {
		if strings.HasPrefix(name, ".") {
			continue
		}
		// Stat rather than the entry's type, because a link to a directory inside the root is a model, too.
		if st, err := r.root.Stat(name); err == nil && st.IsDir() {
			names = append(names, name)
		}
	}
	return names, nil
}

// Models reads every model. Models that cannot be read are left out, and err joins their errors; the others are
// returned even then.
func (r *Repository) Models() ([]*Model, error) {
	names, err := r.Names()
	if err != nil {
		return nil, err
	}
	var models []*Model
	var errs []error
	for _, name := range names {
		m, err := r.Model(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		models = append(models, m)
	}
	return models, errors.Join(errs...)
}

// ReadFile returns a small file of the repository, such as a label list. name is relative to the root and uses forward
// slashes.
func (r *Repository) ReadFile(name string, limit int64) ([]byte, error) {
	st, err := r.root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w in %s", name, ErrNotFound, r.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", name, r.dir, err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s in %s: not a regular file", name, r.dir)
	}
	f, err := r.root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", name, r.dir, err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", name, r.dir, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s in %s: larger than the limit of %d bytes", name, r.dir, limit)
	}
	return data, nil
}

// CheckName reports why name cannot be the name of a model directory.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("a model name is empty")
	case len(name) > 255:
		return fmt.Errorf("model name %.20q... is longer than 255 bytes", name)
	case name == "." || name == "..":
		return fmt.Errorf("model name %q is not allowed", name)
	case strings.HasPrefix(name, "."):
		return fmt.Errorf("model name %q begins with a dot", name)
	}
	for _, c := range name {
		if c == '/' || c == '\\' || c < ' ' || c == 0x7f || c == 0xfffd {
			return fmt.Errorf("model name %q holds %q, which is not allowed", name, c)
		}
	}
	return nil
}

// file resolves a path inside the root to the path a runtime can open. Links are followed as long as they stay inside.
func (r *Repository) file(name string) (string, int64, error) {
	st, err := r.root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", 0, ErrNotFound
	}
	if err != nil {
		return "", 0, err
	}
	if !st.Mode().IsRegular() {
		return "", 0, errors.New("not a regular file")
	}
	real, err := filepath.EvalSymlinks(filepath.Join(r.dir, filepath.FromSlash(name)))
	if err != nil {
		return "", 0, err
	}
	if rel, err := filepath.Rel(r.dir, real); err != nil || !filepath.IsLocal(rel) {
		return "", 0, fmt.Errorf("the link leads out of the repository, to %s", real)
	}
	return real, st.Size(), nil
}

// versions returns the version numbers of a model, ascending. Directories that are no positive number are not versions.
func (r *Repository) versions(model string) ([]int64, error) {
	entries, err := r.list(model)
	if err != nil {
		return nil, err
	}
	var found []int64
	for _, name := range entries {
		n, err := strconv.ParseInt(name, 10, 64)
		if err != nil || n < 1 || strconv.FormatInt(n, 10) != name {
			continue
		}
		if st, err := r.root.Stat(path.Join(model, name)); err == nil && st.IsDir() {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found, nil
}

// list returns the sorted names in a directory.
func (r *Repository) list(dir string) ([]string, error) {
	f, err := r.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > maxEntries {
		return nil, fmt.Errorf("directory %s holds more than %d entries", dir, maxEntries)
	}
	slices.Sort(names)
	return names, nil
}
